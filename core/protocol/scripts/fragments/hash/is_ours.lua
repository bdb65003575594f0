-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- True if a client of ours holds K.
--
-- In:  readers.
-- Out: is_ours.
local is_ours = readers > 0
