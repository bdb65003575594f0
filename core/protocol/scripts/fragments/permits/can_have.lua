-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- True if this waiter can have its permits now: with them no more are out than its own limit and
-- the cap allow.
--
-- In:  holder, readers, used, cap, member (of the waiter).
-- Out: can_have: true, false, or nil if that will never be. permits and limit, of the waiter.
--      is_passed: it wants more than the cap, and the waiters behind it are served.
local permits, limit = string.match(member, '^(%d+)/(%d+)$', @MEMBER_SIZE@ + 1)
local can_have, is_passed
if permits and tonumber(permits) <= tonumber(limit) then
  can_have = (not holder or readers > 0) and used + permits <= math.min(limit, cap or limit)
  is_passed = cap and cap > 0 and tonumber(permits) > cap
end
