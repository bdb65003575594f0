-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Gives K to the owner, once more if it has it. The rest is written by settle.lua.
--
-- In:  K, R, now, holder, readers, token, owner, ms (its lease, or a provisional one).
-- Out: holder, readers.
if not holder then
  redis.call('DEL', R)
  readers = 0
end
readers = readers + redis.call('ZADD', R, 'GT', now + ms, token .. owner)
if not holder then
  --@include fragments/readers_expiry.lua
end
holder = owner
