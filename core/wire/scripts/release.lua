-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- RELEASE: give the lock to the first live waiter, or free it. Nobody else's lock is ever touched.
--
-- KEYS: K, Q, F, and W by clients that leave libraries which poll their turn.
-- ARGV: token, channel prefix; with W: after how many grants of ours, and for how many ms.
-- Returns {result, now, flags}. result: -1 not the owner, 1 freed, 1 + n handed to n waiters. A
--         non-owner that finds K free with waiters hands it on all the same. now: 0 in the usual
--         case, that nobody waits. flags: see grant.lua.
-- Statuses: RL_OK; -1 is RL_E_LOST, or done if an earlier copy of this request got no answer.
local K, Q, F, W = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
--@include fragments/holder_string.lua
local is_owner = holder == ARGV[1]
-- The usual case first. Only what waits has use for the time.
if is_owner and not W and redis.call('EXISTS', Q) == 0 then
  redis.call('DEL', K)
  return {1, 0, 0}
end
--@include fragments/time.lua
if holder and not is_owner then
  return {-1, now, 0}
end
-- W: how many grants in a row were ours; or 'w', a window in which we take nothing.
local count = W and is_owner and (tonumber(redis.pcall('GET', W)) or 0) + 1
local is_their_turn = count and count >= tonumber(ARGV[3])
local prefix, me, lease, fence = ARGV[2], nil, nil, nil
local looked, flags = 0, 0
if redis.call('EXISTS', Q) == 0 then
  if not is_owner then
    return {-1, now, 0}
  end
  redis.call('DEL', K)
  holder = false
elseif is_their_turn then
  redis.call('DEL', K)
  holder = false
  local ms = tonumber(ARGV[4])
  --@include fragments/tell.lua
else
  --@include fragments/grant.lua
end
if is_their_turn then
  redis.call('SET', W, 'w', 'PX', ARGV[4])
elseif count then
  redis.call('SET', W, count, 'PX', '@QUEUE_TTL_MS@')
end
if not is_owner then
  return {-1, now, flags}
end
return {holder and 2 or 1, now, flags}
