-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Makes the lease of the token, which has K, last at least as long as asked for; a late copy must
-- not cut a newer, longer lease.
--
-- In:  K, R, now, holder, readers, token, lease.
if readers > 0 then
  redis.call('ZADD', R, 'GT', now + lease, token)
  --@include fragments/string/settle.lua
else
  redis.call('PEXPIRE', K, math.max(redis.call('PTTL', K), lease))
end
