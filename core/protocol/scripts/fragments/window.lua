-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- The rest of a window in which no redlatch client takes a free K. A window that begins in the
-- future, because the clock went back, is ignored.
--
-- In:  W, now, window declared.
-- Out: window, ms or false.
local mark = redis.pcall('GET', W)
local from, length = string.match(type(mark) == 'string' and mark or '', ' (%d+) (%d+)$')
window = from and now >= tonumber(from) and from + length > now and from + length - now
