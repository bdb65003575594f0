-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Makes the lease of the token last at least as long as asked for; a late copy must not cut a
-- newer, longer lease.
--
-- In:  K, R, now, token, permits, lease.
redis.call('ZADD', R, 'GT', now + lease, token .. permits)
local latest = redis.call('ZRANGE', R, -1, -1, 'WITHSCORES')[2]
redis.call('PEXPIREAT', K, latest)
redis.call('PEXPIREAT', R, latest)
