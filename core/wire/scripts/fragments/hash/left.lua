-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- How long the present holder can go on without renewal.
--
-- In:  K.
-- Out: left, ms; < 0 for ever.
local left = redis.call('PTTL', K)
