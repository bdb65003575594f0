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
    -- They send no message when they leave: who looks again finds out whether the head is alive.
    has_new_head = has_new_head or is_back
    if readers == 0 then
      -- They are about, and have their turn. A server without memory remembers it another time.
      redis.pcall('SET', W, '0 0 ' .. now .. ' 0', 'PX', '@QUEUE_TTL_MS@')
    end
  end
end
if not has_new_head then
  --@include fragments/drop_overdue.lua
end
