-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- What is left of a window in which a free K is not ours to take.
--
-- In:  W, or nil for a client that leaves nobody a turn.
-- Out: window, ms or false.
local window = W and redis.pcall('GET', W) == 'w' and redis.call('PTTL', W)
