-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Shortens the time for which a waiter that no message reaches gets K. K names the token and not
-- the owner: the waiter comes back with another token, and its owner would then have two holds.
--
-- In:  token, holder, ms.
-- Out: ms, owner.
ms = math.min(ms, @SILENT_MS@)
if not holder then
  owner = token
end
