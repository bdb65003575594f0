-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- FORCE_RELEASE: take the lock from whoever holds it. The fence rises, so that a resource which
-- checks fences can refuse the old holder, who learns of it at its next EXTEND.
--
-- KEYS: K, Q, F.
-- ARGV: expected token ('' for any holder), channel prefix.
-- Returns {result, now, flags}. result: 1 done, 0 nothing was held, -1 held by another token than
--         expected or in another format, and untouched. flags: see grant.lua.
-- Statuses: RL_OK; 0 and -1 are RL_E_NOT_HELD.
local K, Q, F = KEYS[1], KEYS[2], KEYS[3]
local expected, prefix, me, lease, fence = ARGV[1], ARGV[2], nil, nil, nil
--@include fragments/holder_string.lua
--@include fragments/time.lua
if type(holder) == 'table' or (holder and expected ~= '' and holder ~= expected) then
  return {-1, now, 0}
end
local result = 0
if holder then
  -- DEL comes first: it is a write that a server without memory allows.
  result = redis.call('DEL', K)
  --@include fragments/fence.lua
end
local looked, flags = 0, 0
--@include fragments/grant.lua
return {result, now, flags}
