-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Counts the holders of permits. Each has an entry in R, the token and behind it the number of its
-- permits, with an expiry of its own. K has the number of permits that are out, so that the cost of
-- a call does not depend on that number. A call drops at most 256 entries whose leases have ended;
-- the head of the queue polls at once as long as there are more.
--
-- In:  K, R, now, holder.
-- Out: readers, the number of holders; 0 if K is free or not of this format. used, the permits that
--      are out. seen: the limit of the last caller that got some. holder: false if the last lease
--      is over. is_open: the head of the queue may be able to get permits.
--      has_more: there may be more ended leases.
local readers, used, seen, has_more = 0, nil, nil, false
if type(holder) == 'string' then
  local alone
  used, seen = string.match(holder, '^@PERMITS@(%d+)/(%d+)$')
  if not used then
    used, seen, alone = string.match(holder, '^@PERMITS@(%d+)/(%d+) ([%w_-]+)$')
  end
  if alone then
    --@include fragments/permits/share.lua
  end
end
if used then
  local ended = redis.call('ZRANGEBYSCORE', R, '-inf', now, 'LIMIT', 0, @MAX_ENTRIES@)
  for _, entry in ipairs(ended) do
    used = used - (tonumber(string.sub(entry, @TOKEN_SIZE@ + 1)) or 0)
  end
  -- Also without any: a server without memory allows what follows a write that needs none.
  if #ended < @MAX_ENTRIES@ then
    redis.call('ZREMRANGEBYSCORE', R, '-inf', now)
  else
    redis.call('ZREM', R, unpack(ended))
  end
  has_more = #ended == @MAX_ENTRIES@
  readers = redis.call('ZCARD', R)
  holder = readers > 0 and holder
  if holder and #ended > 0 then
    redis.call('SET', K, string.format('@PERMITS@%d/%s', used, seen), 'KEEPTTL')
  end
end
used = readers > 0 and tonumber(used) or 0
local is_open = not holder or readers > 0
