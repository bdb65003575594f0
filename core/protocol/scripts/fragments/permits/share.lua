-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Moves the entry of the only holder from K to R, where those of several are.
--
-- K is moved to another node of a cluster with what is left of its time there. So that counts, and
-- not a time of the clock of the first node.
--
-- In:  K, R, now, used, seen, alone (the entry).
-- Out: holder. It returns if this user may not write R.
do
  -- First: it is a write that a server without memory allows, and so is what follows.
  redis.call('DEL', R)
  local ms = redis.call('PTTL', K)
  redis.call('ZADD', R, now + ms, alone)
  --@include fragments/readers_expiry.lua
  holder = '@PERMITS@' .. used .. '/' .. seen
  redis.call('SET', K, holder, 'KEEPTTL')
end
