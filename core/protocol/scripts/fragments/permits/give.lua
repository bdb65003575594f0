-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Gives permits to the token. K is written by settle.lua.
--
-- The first holder after a gap in K clears R: the tokens in it have lost their leases for good.
--
-- In:  K, R, now, holder, readers, used, token, permits, limit, ms (its lease, or a provisional
--      one).
-- Out: holder, readers, used, seen.
if not holder then
  redis.call('DEL', R)
  readers, used = 0, 0
end
if redis.call('ZADD', R, 'GT', now + ms, token .. permits) == 1 then
  readers, used = readers + 1, used + permits
end
if not holder then
  --@include fragments/readers_expiry.lua
end
seen = limit
holder = '@PERMITS@'
