-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- True if clients of ours, or the cap, keep the waiter from its permits.
--
-- In:  holder, readers.
-- Out: is_ours.
local is_ours = readers > 0 or not holder
