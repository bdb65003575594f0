-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Writes K after holds came or went: the owner and the number of its holds, until the last of their
-- leases; or nothing.
--
-- In:  K, R, holder, readers.
if readers > 0 then
  local latest = redis.call('ZRANGE', R, -1, -1, 'WITHSCORES')[2]
  if redis.call('HEXISTS', K, holder) == 0 then
    redis.call('DEL', K)
  end
  redis.call('HSET', K, holder, readers)
  redis.call('PEXPIREAT', K, latest)
  redis.call('PEXPIREAT', R, latest)
elseif not holder then
  redis.call('DEL', K)
end
