-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Writes K after readers came or went: shared until the last of their leases, or gone. The value
-- that one holder has alone is in K already.
--
-- In:  K, R, holder, readers.
if readers > 0 then
  local latest = redis.call('ZRANGE', R, -1, -1, 'WITHSCORES')[2]
  redis.call('SET', K, holder, 'PXAT', latest)
  redis.call('PEXPIREAT', R, latest)
elseif not holder then
  redis.call('DEL', K)
end
