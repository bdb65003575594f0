-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Distinguishes data from a lock. A string or a hash may be a lock of another format or library,
-- which will end; a key of any other type is no lock, and no wait helps.
--
-- In:  K, holder.
-- Out: wrong_type: the type of K if no lock has it, else nil.
local wrong_type
if type(holder) == 'table' then
  wrong_type = redis.call('TYPE', K).ok
  if wrong_type == 'string' or wrong_type == 'hash' then
    wrong_type = nil
  end
end
