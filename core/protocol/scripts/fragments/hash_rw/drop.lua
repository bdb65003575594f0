-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- The token gives up what it has; settle.lua writes that to K.
--
-- In:  K, R, stem, holder, readers, token.
-- Out: holder, readers.
if readers > 0 then
  redis.call('HDEL', K, token)
  redis.call('DEL', stem .. ':' .. token .. ':rwlock_timeout:1')
  readers = readers - redis.call('ZREM', R, token)
end
holder = readers > 0 and holder
