-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Notes the id of a candidate, before its grant: others can read the id of a leader from its grant
-- on, also if another client grants. E has the ids by token. Ids of tokens that are gone stay until
-- E has MOST_IDS of them: then those of the holder and of the first waiters are left; a waiter
-- behind these notes its id again with its next poll.
--
-- The lock does not depend on the id: a key of another type at E, or a command that the user may
-- not use, leaves it out. E lasts as long as the lease of each candidate that it has.
--
-- In:  K, Q, E, token, id, lease.
local known = redis.pcall('HLEN', E)
if type(known) == 'number' and known >= @MOST_IDS@ then
  local tokens, kept = {redis.pcall('GET', K)}, {}
  for _, member in ipairs(redis.call('ZRANGE', Q, 0, @MAX_ENTRIES@ - 1)) do
    tokens[#tokens + 1] = string.sub(member, 1, @TOKEN_SIZE@)
  end
  for _, other in ipairs(tokens) do
    local text = type(other) == 'string' and redis.pcall('HGET', E, other)
    if type(text) == 'string' then
      kept[#kept + 1] = other
      kept[#kept + 1] = text
    end
  end
  local left = redis.pcall('PTTL', E)
  if type(redis.pcall('DEL', E)) == 'number' and #kept > 0 then
    redis.pcall('HSET', E, unpack(kept))
    redis.pcall('PEXPIRE', E, left)
  end
end
local ends = redis.pcall('PTTL', E)
ends = math.max(type(ends) == 'number' and ends or 0, @QUEUE_TTL_MS@, lease)
if type(redis.pcall('HSET', E, token, id)) == 'number' and
    type(redis.pcall('PEXPIRE', E, ends)) == 'table' then
  redis.pcall('HDEL', E, token)
end
