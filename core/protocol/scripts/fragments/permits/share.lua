-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Moves the entry of the only holder from K to R, where those of several are.
--
-- In:  K, R, now, used, seen, alone (the entry), ends (of its lease).
-- Out: holder. It returns if this user may not write R.
do
  -- First: it is a write that a server without memory allows, and so is what follows.
  redis.call('DEL', R)
  redis.call('ZADD', R, ends, alone)
  local ms = ends - now
  --@include fragments/readers_expiry.lua
  holder = '@PERMITS@' .. used .. '/' .. seen
  redis.call('SET', K, holder, 'KEEPTTL')
end
