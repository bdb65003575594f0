-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- True if this waiter can have K now: the owner may once more.
--
-- In:  holder, readers, member, token (of the waiter).
-- Out: can_have. owner, of the waiter.
local owner = string.sub(member, @MEMBER_SIZE@ + 1)
owner = owner == '' and token or owner
local can_have = not holder or (readers > 0 and holder == owner)
