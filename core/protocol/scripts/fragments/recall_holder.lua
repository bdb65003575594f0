-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Notifies the holder, or the readers, whose tokens say that they can be recalled: their clients
-- may only retain the lock. The head of the queue does so with each call, because a message may be
-- lost, and a try that finds no queue. Waiters behind the head do not: 1,000 of them are one
-- recall.
--
-- In:  holder (a string, false or a table), readers, R, prefix, token, me, rank (false: not
--      queued), Q.
-- Out: recalled: 8 if another client got the message, else 0. It is among the flags.
local recalled = 0
if type(holder) == 'string' and (rank == 0 or (me == '' and redis.call('EXISTS', Q) == 0)) then
  local asker = token
  --@include fragments/recall_each.lua
  recalled = heard > 0 and 8 or 0
end
