-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Lets K last as long as the last of its readers, or go. The rest stands in K already.
--
-- In:  K, R, now, holder, readers, theirs_left.
if readers > 0 then
  local latest = redis.call('ZRANGE', R, -1, -1, 'WITHSCORES')[2]
  if latest then
    redis.call('PEXPIREAT', R, latest)
  end
  redis.call('PEXPIREAT', K, math.max(latest or 0, theirs_left > 0 and now + theirs_left or 0))
elseif not holder then
  redis.call('DEL', K)
end
