-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Reads who holds K, in the format of Redisson's read-write lock: a hash with the field `mode`, and
-- for who writes the field `token:write`, for each reader the field `token`; for threads of
-- Redisson's is `UUID:thread`. Keys of readers begin with `stem`, named by its rules.
--
-- In:  K.
-- Out: stem; holder, the one who writes; the shared mark; false when K is free; a table when K has
--      another type, or no mode: busy in another format, and never an error of ours.
local stem = string.find(K, '{', 1, true) and K or '{' .. K .. '}'
local holder = redis.pcall('HGET', K, 'mode')
if type(holder) == 'table' then
  if not string.find(holder.err, 'WRONGTYPE', 1, true) then
    return holder
  end
elseif holder == 'write' then
  for _, field in ipairs(redis.call('HKEYS', K)) do
    if string.sub(field, -6) == ':write' then
      holder = string.sub(field, 1, -7)
    end
  end
elseif holder == 'read' then
  holder = '@SHARED@'
elseif redis.call('EXISTS', K) == 1 then
  holder = {}
end
