-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Shortens the time for which a waiter that no message reaches gets K. K has the name of its token
-- alone: the waiter comes back with another token, and a hold of the same owner would count twice.
--
-- In:  token, holder.
-- Out: ms, owner.
ms = math.min(ms, @SILENT_MS@)
if not holder then
  owner = token
end
