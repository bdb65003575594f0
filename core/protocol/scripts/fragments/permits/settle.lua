-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Writes K after holders came or went: the permits that are out, until the last of the leases; or
-- nothing. A K that is not of this format stays.
--
-- In:  K, R, holder, readers, used, seen.
if readers > 0 then
  local latest = redis.call('ZRANGE', R, -1, -1, 'WITHSCORES')[2]
  redis.call('SET', K, string.format('@PERMITS@%d/%s', used, seen), 'PXAT', latest)
  redis.call('PEXPIREAT', R, latest)
elseif not holder then
  redis.call('DEL', K)
end
