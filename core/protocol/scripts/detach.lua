-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- DETACH: mark the lease of the token as detached, so that ATTACH may take it over. Nothing else
-- changes: the lock stays until its ttl ends. Resending it is harmless.
--
-- The mark is the field of I with the token as its name. It counts how often the lease was detached
-- and attached, and is odd while the lease is detached. So a late copy, which has a lower count,
-- marks nothing. Behind it are the names of the last calls that attached the lease: a late copy of
-- one of them does not use up the mark. The hash formats have no mark, because ATTACH does not
-- support them.
--
-- KEYS: K, R, I.
-- ARGV: token, count of the caller (0, or as ATTACH answered); hash format: owner; permits format:
--       permits/limit.
-- Returns {result, now}. result: 1 it is marked; 0 the token has nothing; 2 this is a late copy, or
--         a repetition, and the lease has been attached since.
-- Statuses: RL_OK; 0 is RL_E_LOST.
local K, R, I = KEYS[1], KEYS[2], KEYS[3]
local token, count = ARGV[1], tonumber(ARGV[2])
--@only hash
local owner = ARGV[3]
--@end
--@only permits
local permits = string.match(ARGV[3], '^%d+')
--@end
--@include fragments/@FORMAT@/holder.lua
--@include fragments/time.lua
--@include fragments/@FORMAT@/readers.lua
--@include fragments/@FORMAT@/mine.lua
if not is_mine then
  return {0, now}
end
--@only permits
token, permits = token .. permits, ''
--@end
--@only string permits
--@include fragments/mark.lua
if marked > count + 1 then
  return {2, now}
end
local mark = count + 1 .. ':' .. calls
--@include fragments/set_mark.lua
--@end
return {1, now}
