-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Reads the cap of a semaphore: the limit that an operator has set. The smaller one of it and the
-- limit of the caller counts.
--
-- In:  W.
-- Out: cap, nil without one. is_cap_timed: it ends at a time of its own; any other cap ends
--      CAP_TTL_MS after the last ACQUIRE.
local cap, is_cap_timed = string.match(tostring(redis.pcall('GET', W)), '^(%d+)(t?)$')
cap, is_cap_timed = tonumber(cap), is_cap_timed == 't'
