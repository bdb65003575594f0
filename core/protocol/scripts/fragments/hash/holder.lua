-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Reads who holds K, hash format: its one field is the owner, the value how often it holds.
--
-- In:  K.
-- Out: holder, the owner; false when K is free; a table when K has another type, or more than the
--      one field: busy in another format, and never an error of ours.
local holder = redis.pcall('HRANDFIELD', K, 2)
if holder.err then
  if not string.find(holder.err, 'WRONGTYPE', 1, true) then
    return holder
  end
elseif #holder < 2 then
  holder = holder[1] or false
end
