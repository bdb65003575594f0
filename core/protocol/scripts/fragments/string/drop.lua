-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- The token gives up what it has; settle.lua writes that to K.
--
-- In:  R, holder, readers, token.
-- Out: holder, readers.
if readers > 0 then
  readers = readers - redis.call('ZREM', R, token)
end
holder = readers > 0 and holder
