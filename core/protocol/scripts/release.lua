-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- RELEASE: give up what the token has, and serve the queue. No other lock is ever touched. A token
-- that was sent in a RELEASE is never sent in an ACQUIRE again.
--
-- KEYS: K, Q, F, R, W; permits format: W is the cap; string format, with a note: and
--       then O or V.
-- ARGV: token, channel prefix; hash format: owner; permits format: permits/limit; with a note:
--       `o`, text and hand-offs as in ONCE BEGIN, or `v`, the value of a flight, and when it ends
--       by this server's clock (up to MAX_TTL_MS: in so many ms); burst, window ms, grants. K is
--       left to other libraries that poll after `burst` grants of ours (0 never, -1 if W is marked,
--       -2 also a search, once a minute), for `window ms`. `grants` is how many this one counts
--       for: local hand-offs of its client count.
-- Returns {result, now, flags}. result: -1 not the owner, 0 the owner has other holds (hash
--         format), 1 freed, 1 + n handed to n waiters. A non-owner that finds K free with waiters
--         hands it on all the same. now: 0 in the usual case, without waiters. flags: see
--         grant.lua; + 4: the note could not be written.
-- Statuses: RL_OK; 0 is RL_STILL_HELD; -1 is RL_E_LOST, or done if an earlier copy of this request
--           was sent before the deadline and got no answer.
local K, Q, F, R, W = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local token, prefix = ARGV[1], ARGV[2]
local yield_every, length, grants = tonumber(ARGV[#ARGV - 2]), ARGV[#ARGV - 1], ARGV[#ARGV]
--@only hash
local owner = ARGV[3]
--@end
--@only permits
local permits = string.match(ARGV[3], '^%d+')
--@end
--@include fragments/@FORMAT@/holder.lua
-- 1 if W is there, and 2 if Q is: a key that is named twice counts twice.
local there
local unnoted, has_value = 0, false
--@only string
if holder == token and #ARGV > 5 and ARGV[3] == 'o' then
  local O, text, run = KEYS[6], ARGV[4], token .. ARGV[5]
  --@include fragments/time.lua
  --@include fragments/mark_done.lua
elseif holder == token and #ARGV > 5 then
  local unit = tonumber(ARGV[5]) > @MAX_TTL_MS@ and 'PXAT' or 'PX'
  unnoted = redis.pcall('SET', KEYS[6], ARGV[4], unit, ARGV[5]).err and 4 or 0
  has_value = unnoted == 0
end
-- The usual case first. Only what waits has use for the time.
if holder == token then
  there = redis.call('EXISTS', W, Q, Q)
  if there == 0 and yield_every <= 0 then
    redis.call('DEL', K)
    return {1, 0, unnoted}
  end
end
--@end
--@only permits
-- The usual case first: it is the only holder, and the queue is empty.
if type(holder) == 'string' and string.match(holder, ' (.*)') == token .. permits and
    redis.call('EXISTS', Q) == 0 then
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
local me, lease, fence
local window, turn, turn_ms = false, nil, nil
--@only permits
-- No other library takes permits: there are no turns. A head that does not fit yet gets its `n`
-- all the same: nothing else shows that it is dead, and a waiter behind it may fit.
local is_head_told = false
yield_every, there = 0, 2
--@include fragments/permits/cap.lua
if is_mine and not holder and redis.call('EXISTS', Q) == 0 then
  redis.call('DEL', K)
  return {1, now, 0}
end
--@end
if is_mine and not holder then
  --@only hash hash_rw
  -- Subscribers there wait by Redisson's rules: they and we take turns.
  --@include fragments/@FORMAT@/their_waiters.lua
  window = their_waiters > 0 and @REDISSON_TURN_MS@
  --@end
  there = there or redis.call('EXISTS', W, Q, Q)
  if yield_every > 0 or window or there % 2 == 1 then
    --@include fragments/turn.lua
  elseif there == 0 then
    --@include fragments/@FORMAT@/settle.lua
    --@only hash hash_rw
    --@include fragments/@FORMAT@/tell_redisson.lua
    --@end
    return {1, now, unnoted}
  --@only string
  elseif yield_every == -2 then
    -- Others wait, and W is not there. A library that polls never finds K free, and is never seen.
    window, turn = 0, 'p 0 ' .. now .. ' ' .. length
    turn_ms = math.max(@SEARCH_MS@, @SEARCH_SHARE@ * length)
  --@end
  end
end
--@only hash_rw
if is_mine and holder then
  -- Plain Redisson locks need a free K: redlatch readers do not join the remaining ones.
  --@include fragments/hash_rw/their_waiters.lua
  if plain_waiters > 0 then
    yield_every, window = 0, @REDISSON_WAIT_MS@
    --@include fragments/turn.lua
  end
end
--@end
--@only string
if has_value then
  --@include fragments/tell_value.lua
end
--@end
--@include fragments/grant.lua
if window then
  -- The head may have died, and K would be free until another waiter polls: the waiters next to the
  -- head do so when the window is over.
  for place, member in ipairs(redis.call('ZRANGE', Q, 1, 3)) do
    local ms = (window == 0 and length or window) + place * @POLL_APART_MS@
    redis.pcall('@PUBLISH@', prefix .. string.sub(member, 1, 22),
      'n' .. string.sub(member, 23, 32) .. string.format('%05d', ms))
  end
end
if turn == '' then
  redis.call('DEL', W)
elseif turn then
  -- If W cannot be written there is no window; that is harmless.
  redis.pcall('SET', W, turn, 'PX', turn_ms)
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
return {1 + granted, now, flags + unnoted}
