-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Counts the permits of leases that have ended, of the first 256 entries, and writes nothing: it
-- answers also while the server takes no writes.
--
-- In:  R, now.
-- Out: ended.
local ended = 0
for _, entry in ipairs(redis.call('ZRANGEBYSCORE', R, '-inf', now, 'LIMIT', 0, @MAX_ENTRIES@)) do
  ended = ended + (tonumber(string.sub(entry, @TOKEN_SIZE@ + 1)) or 0)
end
