-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Reads the server's clock. A client's clock is never used.
--
-- Out: us (microseconds) and now (milliseconds), whole numbers far below 2^53.
local clock = redis.call('TIME')
local us = clock[1] * 1000000 + clock[2]
local now = (us - us % 1000) / 1000
