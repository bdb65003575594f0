-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- DETACH: mark what the token has as left by its holder, so that ATTACH may go on with it. Nothing
-- else changes: the lock stays until its lease ends. Resending it is harmless.
--
-- The mark is the field of I that is named as the token: how often the lease was detached and
-- attached, odd while it is detached. So a late copy, whose count is behind, marks nothing.
-- In the hash formats, which ATTACH does not know, there is no mark.
--
-- KEYS: K, R, I.
-- ARGV: token, count of the caller (0, or as ATTACH answered); hash format: owner.
-- Returns {result, now}. result: 1 it is marked; 0 the token has nothing; 2 this is a late copy, or
--         a repetition, and the lease has been attached since.
-- Statuses: RL_OK; 0 is RL_E_LOST.
local K, R, I = KEYS[1], KEYS[2], KEYS[3]
local token, count = ARGV[1], tonumber(ARGV[2])
--@only hash
local owner = ARGV[3]
--@end
--@include fragments/@FORMAT@/holder.lua
--@include fragments/time.lua
--@include fragments/@FORMAT@/readers.lua
--@include fragments/@FORMAT@/mine.lua
if not is_mine then
  return {0, now}
end
--@only string
--@include fragments/mark.lua
if marked > count + 1 then
  return {2, now}
end
local mark = count + 1
--@include fragments/set_mark.lua
--@end
return {1, now}
