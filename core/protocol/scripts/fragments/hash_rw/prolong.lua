-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Makes the lease of the token, which has K, last at least as long as asked for; a late copy must
-- not cut a newer, longer lease.
--
-- In:  K, R, stem, now, holder, readers, theirs_left, token, lease.
if readers > 0 then
  redis.call('ZADD', R, 'GT', now + lease, token)
  redis.call('SET', stem .. ':' .. token .. ':rwlock_timeout:1', 1, 'PXAT',
    redis.call('ZSCORE', R, token))
  --@include fragments/hash_rw/settle.lua
else
  redis.call('PEXPIRE', K, math.max(redis.call('PTTL', K), lease))
end
