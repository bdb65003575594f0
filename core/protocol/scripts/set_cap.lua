-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- SET CAP: an operator limits a semaphore, from the next grant on, or takes that limit away. The
-- waiters that fit now get their permits. Resending it is harmless.
--
-- KEYS: K, Q, F, R, W, which is the cap.
-- ARGV: channel prefix, cap ('' for none), for how many ms ('' without an end of its own).
-- Returns {result, now, flags}. result: 1. flags: see grant.lua.
-- Statuses: RL_OK.
local K, Q, F, R, W = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local prefix, me, lease, fence, window = ARGV[1], nil, nil, nil, nil
local is_head_told = false
if ARGV[2] == '' then
  redis.call('DEL', W)
elseif ARGV[3] == '' then
  redis.call('SET', W, ARGV[2], 'PX', '@CAP_TTL_MS@')
else
  redis.call('SET', W, ARGV[2] .. 't', 'PX', ARGV[3])
end
--@include fragments/permits/holder.lua
--@include fragments/time.lua
--@include fragments/permits/readers.lua
--@include fragments/permits/cap.lua
--@include fragments/grant.lua
return {1, now, flags}
