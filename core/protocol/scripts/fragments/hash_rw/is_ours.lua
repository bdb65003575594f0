-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- True if clients of ours hold K, and no others.
--
-- In:  R, holder, readers, theirs_left.
-- Out: is_ours.
local is_ours = type(holder) == 'string' and theirs_left == 0 and
  (readers > 0 or string.find(holder, '^[AQgw]%x+$', @CID_SIZE@) ~= nil)
