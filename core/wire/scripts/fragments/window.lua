-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- What is left of a window in which a free K is not ours to take. One from before the clock went
-- back is none.
--
-- In:  W, now, window declared.
-- Out: window, ms or false.
local mark = redis.pcall('GET', W)
local from, length = string.match(type(mark) == 'string' and mark or '', ' (%d+) (%d+)$')
window = from and now >= tonumber(from) and from + length > now and from + length - now
