-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- The token gives up its permits; settle.lua writes that to K.
--
-- In:  R, holder, readers, used, token, permits.
-- Out: holder, readers, used.
if redis.call('ZREM', R, token .. permits) == 1 then
  readers, used = readers - 1, used - permits
end
holder = readers > 0 and holder
