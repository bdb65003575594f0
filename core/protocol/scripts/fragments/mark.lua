-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Reads how often a lease was detached and attached, and by which call last: see detach.lua.
--
-- In:  I, token.
-- Out: marked, that number; marked_by, '' if it was detached last.
local found = redis.pcall('HGET', I, token)
local marked, marked_by = string.match(type(found) == 'string' and found or '0', '^(%d+):?(.*)$')
marked = tonumber(marked or 0)
