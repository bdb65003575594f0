-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Undoes give.lua: no client received the grant.
--
-- In:  R, holder, readers, mode, token, expiry.
-- Out: holder, readers.
if mode == 's' then
  readers = readers - redis.call('ZREM', R, token)
  holder = readers > 0 and holder
elseif mode == 'u' then
  -- The entry in the queue is dead; the reader has its lease, and may still be alive.
  redis.call('ZADD', R, expiry, token)
  if type(redis.pcall('PEXPIREAT', R, expiry)) == 'table' then
    -- R would never expire. K says that the token has it alone, until the same time.
    redis.call('DEL', R)
    break
  end
  readers = 1
  holder = '@SHARED@'
else
  holder = false
end
