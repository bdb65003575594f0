-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Puts the caller at the head of the queue, or finds it there. Its score is its ticket, which says
-- since when it waits, less so much that it comes before all others.
--
-- In:  Q, me, us, ticket ('' asks for a new one).
-- Out: ticket, 16 digits.
local score, queue_left = redis.call('ZSCORE', Q, me), redis.call('PTTL', Q)
if score then
  ticket = string.format('%016.0f', score + @UPGRADE_TICKET@)
else
  ticket = ticket == '' and string.format('%016.0f', us) or ticket
  redis.call('ZADD', Q, string.format('%.0f', ticket - @UPGRADE_TICKET@), me)
end
--@include fragments/queue_expiry.lua
