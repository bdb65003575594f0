-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Undoes give.lua: no client received the grant.
--
-- In:  K, R, stem, now, holder, readers, mode, token, expiry.
-- Out: holder, readers.
if mode == 's' then
  redis.call('HDEL', K, token)
  redis.call('DEL', stem .. ':' .. token .. ':rwlock_timeout:1')
  readers = readers - redis.call('ZREM', R, token)
  holder = readers > 0 and holder
elseif mode == 'u' then
  -- The entry in the queue is dead; the reader has its lease, and may still be alive.
  redis.call('ZADD', R, expiry, token)
  if type(redis.pcall('PEXPIREAT', R, expiry)) == 'table' then
    -- As in the string format: R would never expire.
    redis.call('DEL', R)
    break
  end
  redis.call('DEL', K)
  redis.call('HSET', K, 'mode', 'read', token, 1)
  redis.call('PEXPIREAT', K, expiry)
  redis.call('SET', stem .. ':' .. token .. ':rwlock_timeout:1', 1, 'PX', expiry - now)
  readers = 1
  holder = '@SHARED@'
else
  holder = false
end
