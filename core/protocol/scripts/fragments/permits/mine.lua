-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- True if the token has its permits.
--
-- In:  R, readers, token, permits.
-- Out: is_mine.
local is_mine = readers > 0 and redis.call('ZSCORE', R, token .. permits) ~= false
