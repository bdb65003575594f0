-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- RELEASE: give up what the token has, and serve the queue. Nobody else's lock is ever touched.
--
-- KEYS: K, Q, F, R, and W by clients that leave other libraries their turn.
-- ARGV: token, channel prefix; hash format: owner; with W: after how many grants of ours, 0 for
--       never, and for how many ms.
-- Returns {result, now, flags}. result: -1 not the owner, 0 the owner has other holds (hash
--         format), 1 freed, 1 + n handed to n waiters. A non-owner that finds K free with waiters
--         hands it on all the same. now: 0 in the usual case, that nobody waits. flags: see
--         grant.lua.
-- Statuses: RL_OK; 0 is RL_STILL_HELD; -1 is RL_E_LOST, or done if an earlier copy of this request
--           got no answer.
local K, Q, F, R, W = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local token, prefix = ARGV[1], ARGV[2]
--@only hash
local owner = ARGV[3]
--@end
--@include fragments/@FORMAT@/holder.lua
--@only string
-- The usual case first. Only what waits has use for the time.
if holder == token and not W and redis.call('EXISTS', Q) == 0 then
  redis.call('DEL', K)
  return {1, 0, 0}
end
--@end
--@include fragments/time.lua
--@include fragments/@FORMAT@/readers.lua
--@include fragments/@FORMAT@/mine.lua
if not is_mine and not is_open then
  return {-1, now, 0}
end
local was_writer = is_mine and readers == 0
if is_mine then
  --@include fragments/@FORMAT@/drop.lua
end
--@only hash
local is_still_held = is_mine and holder
--@end
--@only hash hash_rw
--@include fragments/@FORMAT@/channel.lua
--@end
-- W: how many grants in a row were ours; or 'w', a window in which we take nothing.
local window, count = false, nil
if W and is_mine and not holder then
  local burst = tonumber(ARGV[#ARGV - 1])
  if burst > 0 then
    count = (tonumber(redis.pcall('GET', W)) or 0) + 1
    window = count >= burst and tonumber(ARGV[#ARGV])
  end
  --@only hash hash_rw
  -- Whoever subscribes there waits by Redisson's rules: they and we take turns. An error here, as
  -- without the right to look, would leave half a release.
  local theirs = redis.pcall('PUBSUB', 'NUMSUB', channel, fair_channel)
  if (theirs[2] or 0) + (theirs[4] or 0) > 0 then
    window = window or @REDISSON_TURN_MS@
  end
  --@end
end
local me, lease, fence
--@include fragments/grant.lua
if window then
  redis.call('SET', W, 'w', 'PX', window)
elseif count then
  redis.call('SET', W, count, 'PX', '@QUEUE_TTL_MS@')
end
--@only hash hash_rw
if is_mine then
  --@include fragments/@FORMAT@/tell_redisson.lua
end
--@end
--@only hash
if is_still_held then
  return {0, now, flags}
end
--@end
if not is_mine then
  return {-1, now, flags}
end
return {1 + granted, now, flags}
