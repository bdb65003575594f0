-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Gives K, which the caller can have at once, to the caller.
--
-- The lease stays the text that the caller sent: the server would write a number as text again.
--
-- In:  K, F, R, us, now, holder, readers, fence, token, owner (hash format), mode, lease.
-- Out: number, the fence of this grant; holder, readers, fence. K is written.
local ms = lease
--@include fragments/@FORMAT@/fence.lua
if spoilt then
  return spoilt
end
--@include fragments/@FORMAT@/give.lua
--@include fragments/@FORMAT@/settle.lua
