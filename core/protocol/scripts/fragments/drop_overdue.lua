-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Drops a few overdue waiters from the head of the queue, so that a queue whose waiters all gave up
-- shrinks while the lock is held. The caller itself stays: it is alive.
--
-- In:  Q, me, now, has_new_head (false).
-- Out: has_new_head: an entry was dropped in front of one that still waits.
local first = redis.call('ZRANGE', Q, 0, @OVERDUE_ENTRIES@, 'WITHSCORES')
for i = 1, #first, 2 do
  local member, ticket_us = first[i], first[i + 1] % @UPGRADE_TICKET@
  if member == me or ticket_us / 1000 + (tonumber(string.sub(member, 39, 51)) or 0) >= now then
    has_new_head = i > 1
    break
  end
  if i > 2 * @OVERDUE_ENTRIES@ then
    break
  end
  redis.call('ZREM', Q, member)
end
