-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- EXTEND SHARED: extend the lease of any holder to at least ttl_ms from now. It is for readers, for
-- those that were readers, for attached leases and for Redisson's formats. It never shortens a
-- lease, because it may be a late copy, and never brings back a lock that was gone: a gap means
-- lost for good.
--
-- While a slot of a cluster is being moved, K and R may be at two nodes: then each is extended by a
-- call of its own, K first. K alone does not say that the token is a reader. R alone does not say
-- that K had no gap, but the first reader after a gap clears R. So both answers together do.
--
-- KEYS: K, R and for a lease that was attached I, whose mark must last as long as K; for one part:
--       K alone, or R alone.
-- ARGV: token, ttl_ms; hash format: owner; permits format: permits/limit; for one part: 'k' or 'r'.
-- Returns {result, now}. result: 1 extended; 2 extended, as a reader; 0 the token has nothing; -1
--         the same, and others hold K (hash format: another owner). Part 'k': 1 the token has K
--         alone, extended; 2 K is extended, and R has to confirm the token. Part 'r': 2 extended,
--         if K was.
-- Statuses: RL_OK; RL_E_LOST.
local K, R, I = KEYS[1], KEYS[2], KEYS[3]
local token, lease = ARGV[1], ARGV[2]
--@only string hash_rw
local part, entry = ARGV[3], token
--@end
--@only hash
local owner, part = ARGV[3], ARGV[4]
local entry = token .. owner
--@end
--@only permits
local permits, part = string.match(ARGV[3], '^%d+'), ARGV[4]
local entry = token .. permits
--@end
if part == 'r' then
  --@include fragments/time.lua
  R = K
  local expiry = redis.call('ZSCORE', R, entry)
  if not expiry or tonumber(expiry) <= now then
    return {0, now}
  end
  redis.call('ZADD', R, 'GT', now + lease, entry)
  redis.call('PEXPIREAT', R, redis.call('ZRANGE', R, -1, -1, 'WITHSCORES')[2])
  return {2, now}
end
--@include fragments/@FORMAT@/holder.lua
--@include fragments/time.lua
local other = type(holder) == 'string' and -1 or 0
--@only permits
-- It is the only holder, and was never attached.
if type(holder) == 'string' and not I and string.match(holder, ' (.*)') == entry then
  redis.call('PEXPIRE', K, math.max(redis.call('PTTL', K), lease))
  return {1, now}
end
--@end
if part == 'k' then
  --@only string
  local result = holder == token and 1 or (holder == '@SHARED@' and 2 or other)
  --@end
  --@only hash_rw
  -- A field of its own: Redisson makes K anew without R.
  local is_reader = holder == '@SHARED@' and redis.call('HEXISTS', K, token) == 1
  local result = holder == token and 1 or (is_reader and 2 or other)
  --@end
  --@only hash
  local result = holder == owner and 2 or other
  --@end
  --@only permits
  local result = type(holder) == 'string' and string.match(holder, '^@PERMITS@%d+/%d+')
      and 2 or other
  --@end
  if result > 0 then
    redis.call('PEXPIRE', K, math.max(redis.call('PTTL', K), lease))
  end
  return {result, now}
end
--@include fragments/@FORMAT@/readers.lua
--@include fragments/@FORMAT@/mine.lua
if not is_mine then
  --@only hash
  -- Another acquisition of the same owner is no other holder.
  if holder == owner then
    return {0, now}
  end
  --@end
  --@only permits
  -- Other holders have not taken what it had.
  if readers > 0 then
    return {0, now}
  end
  --@end
  --@only hash_rw
  -- R alone is gone.
  if holder == '@SHARED@' and redis.call('HEXISTS', K, token) == 1 then
    return {0, now}
  end
  --@end
  return {type(holder) == 'string' and -1 or 0, now}
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
