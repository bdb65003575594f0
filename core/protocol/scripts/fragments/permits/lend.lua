-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Shortens the time for which a waiter that no message reaches gets permits.
--
-- In:  ms.
-- Out: ms.
ms = math.min(ms, @SILENT_MS@)
