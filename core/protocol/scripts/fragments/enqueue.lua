-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Puts the caller into the queue, or finds it there: a resent request keeps its place. It is looked
-- for first, so that a poll by a waiter writes nothing that a server without memory would refuse.
--
-- A new ticket is above the last one even when the clock went back: none overtakes by that.
--
-- A late copy of the first request, which knows no ticket yet, may have put the caller behind
-- others: by its ticket it comes back to its place.
--
-- In:  Q, me, us, ticket ('' asks for a new one).
-- Out: ticket, 16 digits, however the server writes a score.
local score, queue_left = redis.call('ZSCORE', Q, me), redis.call('PTTL', Q)
if score and (ticket == '' or tonumber(score) <= tonumber(ticket)) then
  ticket = string.format('%016.0f', score)
else
  if ticket == '' then
    local last = redis.call('ZRANGE', Q, -1, -1, 'WITHSCORES')[2]
    ticket = string.format('%016.0f', math.max(us, (last or 0) + 1))
  end
  redis.call('ZADD', Q, ticket, me)
end
--@include fragments/queue_expiry.lua
