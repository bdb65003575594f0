-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- STATS: the numbers of a semaphore. The cost does not depend on them.
--
-- KEYS: K, Q, F, R, W, which is the cap.
-- ARGV: none.
-- Returns {now, used, seen, cap, cap_ms, waiting}. used: the permits that are out; see
--         count_ended.lua. seen: the limit
--         of the last caller that got some; 0 if none are out. cap: -1 without one. cap_ms: until
--         its end, -1 without an end of its own. waiting: the number of waiters.
-- Statuses: RL_OK.
local K, Q, F, R, W = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
--@include fragments/permits/holder.lua
--@include fragments/time.lua
local used, seen, alone
if type(holder) == 'string' then
  used, seen, alone = string.match(holder, '^@PERMITS@(%d+)/(%d+)(.*)$')
end
used = tonumber(used or 0)
if alone == '' then
  --@include fragments/permits/count_ended.lua
  used = used - ended
end
--@include fragments/permits/cap.lua
return {now, used, used > 0 and tonumber(seen) or 0, cap or -1,
  is_cap_timed and redis.call('PTTL', W) or -1, redis.call('ZCARD', Q)}
