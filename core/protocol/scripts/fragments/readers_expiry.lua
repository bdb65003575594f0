-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Gives a new R its expiry before K is written. If this user may not, R is removed: it would never
-- expire.
--
-- In:  R, now, ms.
-- Out: none; it returns if it is refused.
local refused = redis.pcall('PEXPIREAT', R, now + ms)
if type(refused) == 'table' then
  redis.call('DEL', R)
  return refused
end
