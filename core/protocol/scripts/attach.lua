-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- ATTACH: take over a detached lease by using up its mark, and make it last at least ttl_ms from
-- now. So no two clients hold the lock with one token. Resending it with the same name is harmless,
-- also after a later DETACH: the mark of that is for another call.
--
-- KEYS: K, R, I.
-- ARGV: token, ttl_ms, a name of this call that no other one has; permits format: permits/limit.
-- Returns {result, now, count}. result: 1 the caller holds; 2 it holds, as a reader; 0 the token
--         has nothing; -1 it has, and its holder has not detached it. count: see detach.lua.
-- Statuses: RL_OK; 0 and -1 are RL_E_NOT_HELD.
local K, R, I = KEYS[1], KEYS[2], KEYS[3]
local token, lease, name = ARGV[1], ARGV[2], ARGV[3]
--@only permits
local permits = string.match(ARGV[4], '^%d+')
--@end
--@include fragments/@FORMAT@/holder.lua
--@include fragments/time.lua
--@include fragments/@FORMAT@/readers.lua
--@include fragments/@FORMAT@/mine.lua
if not is_mine then
  return {0, now, 0}
end
--@only permits
token, permits = token .. permits, ''
--@end
--@include fragments/mark.lua
local is_detached = marked % 2 == 1
local at = string.find(';' .. calls .. ';', ';' .. name .. ';', 1, true)
if is_detached and at or not is_detached and at ~= 1 then
  return {-1, now, 0}
end
marked = marked + marked % 2
if is_detached then
  calls = name .. ';' .. calls
  calls = string.match(calls, '^' .. string.rep('[^;]*;', @MARK_CALLS@)) or calls
end
-- First: it may be refused, and the lease then stays detached.
local mark = marked .. ':' .. calls
--@include fragments/set_mark.lua
--@include fragments/@FORMAT@/prolong.lua
redis.call('PEXPIRE', I, math.max(redis.call('PTTL', K), 1))
--@only string
return {readers > 0 and 2 or 1, now, marked}
--@end
--@only permits
return {1, now, marked}
--@end
