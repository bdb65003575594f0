-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- CANCEL: leave the queue. A lock that the token holds stays held: the caller releases it if 2
-- comes back.
--
-- KEYS: K, Q, F, R; permits format: also W, which is the cap.
-- ARGV: member, channel prefix; hash format: owner.
-- Returns {result, now, flags}. result: 0 it was not queued, 1 removed, 2 its token has got K. If
--         others can have K, they get it. flags: see grant.lua.
-- Statuses: RL_TIMEOUT or RL_CANCELLED; 2 is followed by RELEASE, or by DOWNGRADE if the member
--           waited to upgrade.
local K, Q, F, R, W = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local member, prefix = ARGV[1], ARGV[2]
local token, mode = string.sub(member, 1, @TOKEN_SIZE@), string.sub(member, 33, 33)
--@only hash
local owner = ARGV[3]
--@end
--@only permits
local permits = string.match(member, '^%d+', @MEMBER_SIZE@ + 1) or ''
--@end
--@include fragments/@FORMAT@/holder.lua
--@include fragments/time.lua
--@include fragments/@FORMAT@/readers.lua
local head = redis.call('ZRANGE', Q, 0, 0)[1]
if mode == 'u' and head and string.sub(head, 1, 33) == string.sub(member, 1, 33) then
  -- A late copy of an earlier UPGRADE may have taken its place. The price: a late copy of a CANCEL
  -- removes the entry of a later upgrade, whose next request is queued again.
  member = head
end
local was_head = head == member
--@only permits
--@include fragments/permits/cap.lua
local is_head_told = not was_head
--@end
local result = redis.call('ZREM', Q, member)
--@include fragments/@FORMAT@/mine.lua
if is_mine and (mode ~= 'u' or holder == token) then
  result = 2
end
local me, lease, fence, window
if is_open or was_head then
  -- Only the head knows when the holder's time ends (a provisional lease is far shorter than what
  -- the others were notified): that knowledge must not leave with it.
  --@include fragments/grant.lua
  return {result, now, flags}
end
return {result, now, 0}
