-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- DOWNGRADE: the writer becomes a reader, and readers at the head of the queue get in. It mints no
-- fence. Resending it is harmless. It also takes back an upgrade whose outcome is unknown: a reader
-- stays one.
--
-- KEYS: K, Q, F, R.
-- ARGV: token, ttl_ms, channel prefix, fence of the writer ('' for any: to take an upgrade
--       back).
-- Returns {result, now, flags}. result: 1 it reads, for at least ttl_ms and for what was left of
--         its lease; 0 the token has nothing, or writes by a later upgrade: this is a late copy.
--         flags: see grant.lua.
-- Statuses: RL_OK; RL_E_LOST.
local K, Q, F, R = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local token, lease, prefix = ARGV[1], ARGV[2], ARGV[3]
--@include fragments/@FORMAT@/holder.lua
--@include fragments/time.lua
--@include fragments/@FORMAT@/readers.lua
--@include fragments/@FORMAT@/mine.lua
local own, last, spoilt = tonumber(ARGV[4] or ''), redis.pcall('GET', F), nil
--@include fragments/fence_check.lua
if not is_mine or (readers == 0 and own and last and last > own) then
  return {0, now, 0}
end
if readers == 0 then
  -- DEL comes first: it is a write that a server without memory allows.
  redis.call('DEL', R)
  local mode, ms = 's', math.max(tonumber(lease), redis.call('PTTL', K))
  holder = false
  --@include fragments/@FORMAT@/give.lua
else
  --@include fragments/@FORMAT@/prolong.lua
end
local me, fence, window
lease = nil
--@include fragments/grant.lua
--@only hash_rw
local was_writer = true
--@include fragments/hash_rw/channel.lua
--@include fragments/hash_rw/tell_redisson.lua
--@end
return {1, now, flags}
