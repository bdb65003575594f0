-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- True if this waiter can have K now. Readers share it; one who waits to upgrade gets it as the
-- only reader left, and has to be one.
--
-- In:  R, holder, readers, mode, token (of the waiter).
-- Out: can_have: true, false, or nil if that will never be.
local can_have = not holder
if mode == 's' then
  can_have = can_have or readers > 0
elseif mode == 'u' then
  can_have = nil
  if readers > 0 and redis.call('ZSCORE', R, token) then
    can_have = readers == 1
  end
end
