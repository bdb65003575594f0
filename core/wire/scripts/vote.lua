-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- VOTE: the usual cases of ACQUIRE without a member, for a node of a quorum without fences: take K
-- alone if it is free and nothing waits for it; and refuse if another token of ours has it. Five
-- nodes may share one machine, so that what a script costs counts five times. Any other case is
-- left to ACQUIRE, with the same token.
--
-- KEYS: K, Q, W.
-- ARGV: token, lease_ms.
-- Returns 1: held by the token, for at least lease_ms from now, without a fence.
--      or 0: not decided. Nothing was written; also what a repetition finds.
--      or {0, pttl, now, '', -1, check, holder, type, 0}: not held; see acquire.lua.
-- Statuses: RL_OK; RL_BUSY; 0 is followed by ACQUIRE.
local K, Q = KEYS[1], KEYS[2]
if redis.call('EXISTS', K, Q, KEYS[3]) == 0 then
  redis.call('SET', K, ARGV[1], 'PX', ARGV[2])
  return 1
end
local holder = redis.pcall('GET', K)
--@include fragments/string/is_ours.lua
if is_ours and holder ~= ARGV[1] and holder ~= '@SHARED@' then
  local me, ticket, window, served = '', '', false, 0
  --@include fragments/time.lua
  --@include fragments/refusal.lua
end
return 0
