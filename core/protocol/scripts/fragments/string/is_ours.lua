-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- True if a client of ours holds K: readers, or a token of ours. Other libraries write what they
-- like, redis-py 32 hex digits; the last character of a client's id is never one of those.
--
-- In:  holder, a string, false, or a table.
-- Out: is_ours.
local is_ours = holder == '@SHARED@' or (type(holder) == 'string' and #holder == @TOKEN_SIZE@ and
  string.find(holder, '^[AQgw]%x+$', @CID_SIZE@) ~= nil)
