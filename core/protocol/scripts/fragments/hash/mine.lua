-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- True if the token is one of the holds of K's owner.
--
-- In:  R, holder, readers, token, owner.
-- Out: is_mine.
local is_mine = readers > 0 and holder == owner and
  redis.call('ZSCORE', R, token .. owner) ~= false
