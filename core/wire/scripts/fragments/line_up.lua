-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Puts the caller into the queue, unless it only tries, and looks whether its head can be served.
--
-- In:  Q, W, us, now, me, ticket, holder, readers, is_open, window.
-- Out: ticket; has_new_head: run grant.lua.
if me ~= '' then
  --@include fragments/enqueue.lua
else
  ticket = ''
end
if W and holder then
  -- They had their turn: the next window is as many grants away as the first.
  --@include fragments/@FORMAT@/is_ours.lua
  if not is_ours then
    redis.call('DEL', W)
  end
end
local has_new_head = is_open and not window
if not has_new_head then
  --@include fragments/drop_overdue.lua
end
