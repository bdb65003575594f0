-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- How long the present holders can go on without renewal, for who waits: one that waits to upgrade
-- does not wait for itself.
--
-- In:  K, R, now, readers, theirs_left, mode, token (of who waits).
-- Out: left, ms; < 0 without a limit.
local left
if readers > 0 then
  local last = redis.call('ZRANGE', R, -2, -1, 'WITHSCORES')
  local ours = mode == 'u' and last[3] == token and last[2] or last[#last] or now
  left = math.max(ours - now, theirs_left)
else
  left = redis.call('PTTL', K)
end
