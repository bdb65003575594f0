-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Counts the holds of the owner. Each has a token and an expiry of its own in R, followed by the
-- owner: R without K's owner is a rest of earlier times, and K then foreign.
--
-- In:  K, R, now, holder.
-- Out: readers, the number of holds; 0 if K is free or foreign. is_open: the head of the queue may
--      be able to get K.
local readers = 0
if type(holder) == 'string' then
  redis.call('ZREMRANGEBYSCORE', R, '-inf', now)
  local first = redis.call('ZRANGE', R, 0, 0)[1]
  if first and string.sub(first, @TOKEN_SIZE@ + 1) == holder then
    readers = redis.call('ZCARD', R)
  end
end
local is_open = not holder
