-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Reads how often a lease was detached and attached, and by which calls: see detach.lua.
--
-- In:  I, token.
-- Out: marked, that number; calls, the names of the last attaches, the latest first.
local found = redis.pcall('HGET', I, token)
local marked, calls = string.match(type(found) == 'string' and found or '0', '^(%d+):?(.*)$')
marked = tonumber(marked or 0)
