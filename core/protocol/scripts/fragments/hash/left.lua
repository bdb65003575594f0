-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- How long the present holder can go on without renewal.
--
-- In:  K; R, now, readers: what settle.lua will make of it.
-- Out: left, ms; < 0 without a limit.
local left
if readers > 0 then
  left = redis.call('ZRANGE', R, -1, -1, 'WITHSCORES')[2] - now
else
  left = redis.call('PTTL', K)
end
