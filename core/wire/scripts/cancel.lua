-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- CANCEL: leave the queue. What the token holds stays held: the caller releases it if 2 comes back.
--
-- KEYS: K, Q, F.
-- ARGV: member, channel prefix.
-- Returns {result, now, flags}. result: 0 it was not queued, 1 removed, 2 its token holds K. If K
--         is free, the next waiter gets it. flags: see grant.lua.
-- Statuses: RL_TIMEOUT or RL_CANCELLED; 2 is followed by RELEASE.
local K, Q, F = KEYS[1], KEYS[2], KEYS[3]
local member, prefix = ARGV[1], ARGV[2]
--@include fragments/holder_string.lua
--@include fragments/time.lua
local was_head = redis.call('ZRANGE', Q, 0, 0)[1] == member
local result = redis.call('ZREM', Q, member)
if holder == string.sub(member, 1, 32) then
  result = 2
end
local me, lease, fence
local looked, flags = 0, 0
if not holder then
  --@include fragments/grant.lua
elseif was_head then
  -- Only the head knows when the holder's time ends (a grant's claim is far shorter than what the
  -- others were told): that knowledge must not leave with it.
  local ms = redis.call('PTTL', K)
  --@include fragments/tell.lua
end
return {result, now, flags}
