-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Reads who holds K, permits format.
--
-- In:  K.
-- Out: holder, the value of K: `rl:permits:` and how many permits are out; false when K is free;
--      a table when K has another type, which means busy in another format and is never an error
--      of ours.
local holder = redis.pcall('GET', K)
if type(holder) == 'table' and not string.find(holder.err, 'WRONGTYPE', 1, true) then
  return holder
end
