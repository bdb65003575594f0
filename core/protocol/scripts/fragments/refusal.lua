-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- The answer to a caller that does not get K. See acquire.lua.
--
-- In:  K, Q, R, prefix, token, me, ticket, now, holder, readers, window, served; hash_rw format:
--      theirs_left, their_field.
-- Out: none; it returns.
local kind, value, reader = 'none', '', nil
local rank = redis.call('ZRANK', Q, me)
--@only string
--@include fragments/recall_holder.lua
served = served + recalled
--@end
if type(holder) == 'table' then
  kind = redis.call('TYPE', K).ok
elseif holder then
  kind, value = '@TYPE@', string.sub(holder, 1, 64)
  --@only string hash_rw
  if readers == 1 then
    reader = redis.call('ZRANGE', R, 0, 0)[1]
  end
  --@end
  --@only permits
  if readers == 1 then
    reader = string.sub(redis.call('ZRANGE', R, 0, 0)[1], 1, @TOKEN_SIZE@)
  end
  --@end
  --@only hash
  if readers > 0 then
    value = string.sub(redis.call('ZRANGE', R, 0, 0)[1], 1, @TOKEN_SIZE@)
  end
  --@end
  --@only hash_rw
  if theirs_left > 0 then
    -- Redisson notifies no redlatch client when its readers leave: the caller has to poll.
    value = string.sub(their_field, 1, 64)
  end
  --@end
end
--@only permits
if readers > 0 or (cap and not holder) then
  kind = 'string'
  value = string.format('@PERMITS@%d/%s%s', used, seen or limit, cap and '/' .. cap or '')
end
-- A waiter behind others has nothing to look for: it may fit now, and not be next.
if me == '' or rank == 0 then
  --@include fragments/permits/left.lua
  window = left
elseif not holder then
  window = redis.call('PTTL', W)
end
--@end
return {0, window or redis.call('PTTL', K), now, ticket, rank or -1,
  string.sub(redis.sha1hex(K), 1, 8), value, kind, served, reader}
