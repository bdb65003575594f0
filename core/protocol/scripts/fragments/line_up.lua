-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Puts the caller into the queue, unless it only tries, and looks whether its head can be served.
--
-- In:  Q, W, us, now, me, ticket, holder, readers, is_open, window.
-- Out: ticket; has_new_head: run grant.lua.
local is_back = me ~= '' and ticket ~= ''
if me ~= '' then
  --@include fragments/enqueue.lua
else
  ticket = ''
end
local has_new_head = is_open and not window
if holder then
  --@include fragments/@FORMAT@/is_ours.lua
  if not is_ours then
    -- Other libraries send no message when they release: a polling waiter checks whether the head
    -- is alive.
    has_new_head = has_new_head or is_back
    --@only string hash hash_rw
    if readers == 0 then
      -- Another library has its turn: note that it uses K. A server without memory notes it another
      -- time.
      redis.pcall('SET', W, '0 0 ' .. now .. ' 0', 'PX', '@QUEUE_TTL_MS@')
    end
    --@end
  end
end
if not has_new_head then
  --@include fragments/drop_overdue.lua
end
