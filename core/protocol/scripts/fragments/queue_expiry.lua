-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Renews the expiry of Q after a ZADD. If this user may not, the entry is removed: a queue that it
-- made would never expire.
--
-- In:  Q, me, queue_left (PTTL of Q, read before the ZADD).
-- Out: none; it returns if it is refused.
if queue_left < @QUEUE_TTL_MS@ / 2 then
  local refused = redis.pcall('PEXPIRE', Q, '@QUEUE_TTL_MS@')
  if type(refused) == 'table' then
    redis.call('ZREM', Q, me)
    return refused
  end
end
