-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Makes the lease of this hold last at least as long as asked for; a late copy must not cut a
-- newer, longer lease.
--
-- In:  K, R, now, token, owner, lease.
redis.call('ZADD', R, 'GT', now + lease, token .. owner)
local latest = redis.call('ZRANGE', R, -1, -1, 'WITHSCORES')[2]
redis.call('PEXPIREAT', K, latest)
redis.call('PEXPIREAT', R, latest)
