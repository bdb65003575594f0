-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- EXTEND SHARED: extend the lease of one of several holders (a reader; hash format: an acquisition
-- of the owner), or of any holder in Redisson's formats, to at least ttl_ms from now. It never
-- shortens a lease, because it may be a late copy, and never brings back a lock that was gone: a
-- gap means lost for good.
--
-- KEYS: K, R, or K, R and I (few keys, so that it works while a slot is being moved). I of a lease
--       that was attached: its mark must last as long as K.
-- ARGV: token, ttl_ms; hash format: owner.
-- Returns {result, now}. result: 1 extended; 2 extended, as a reader; 0 the token has nothing.
-- Statuses: RL_OK; RL_E_LOST.
local K, R, I = KEYS[1], KEYS[2], KEYS[3]
local token, lease = ARGV[1], ARGV[2]
--@only hash
local owner = ARGV[3]
--@end
--@include fragments/@FORMAT@/holder.lua
--@include fragments/time.lua
--@include fragments/@FORMAT@/readers.lua
--@include fragments/@FORMAT@/mine.lua
if not is_mine then
  return {0, now}
end
--@include fragments/@FORMAT@/prolong.lua
if I then
  redis.call('PEXPIRE', I, math.max(redis.call('PTTL', K), 1))
end
--@only string hash_rw
if readers > 0 then
  return {2, now}
end
--@end
return {1, now}
