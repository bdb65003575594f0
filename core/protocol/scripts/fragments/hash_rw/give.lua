-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Gives K to the token. The key beside a reader's field is what Redisson goes by.
--
-- In:  K, R, stem, now, holder, readers, mode, token, ms (its lease, or a provisional one).
-- Out: holder, readers. expiry: of the reader that was upgraded.
local expiry
if mode == 's' then
  if not holder then
    redis.call('DEL', K, R)
    readers = 0
  end
  readers = readers + redis.call('ZADD', R, 'GT', now + ms, token)
  if readers == 1 then
    --@include fragments/readers_expiry.lua
  end
  redis.call('HSET', K, 'mode', 'read', token, 1)
  if not holder then
    redis.call('PEXPIREAT', K, now + ms)
  end
  redis.call('SET', stem .. ':' .. token .. ':rwlock_timeout:1', 1, 'PX', ms)
  holder = '@SHARED@'
else
  if mode == 'u' then
    expiry = redis.call('ZSCORE', R, token)
    ms = math.max(ms, expiry - now)
    redis.call('DEL', stem .. ':' .. token .. ':rwlock_timeout:1')
  end
  redis.call('DEL', K, R)
  redis.call('HSET', K, 'mode', 'write', token .. ':write', 1)
  local refused = redis.pcall('PEXPIRE', K, ms)
  if type(refused) == 'table' then
    redis.call('DEL', K)
    return refused
  end
  readers, holder = 0, token
end
