-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- True if the token has K, alone or as a reader.
--
-- In:  R, holder, readers, token.
-- Out: is_mine.
local is_mine = holder == token or (readers > 0 and redis.call('ZSCORE', R, token) ~= false)
