-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Counts who shares K: readers of ours, who stand in R as well, and threads of Redisson's, of which
-- each hold has a key that expires with it. The field of one that is over stays until K goes.
--
-- In:  K, R, stem, now, holder.
-- Out: readers, their number; 0 unless K is shared. holder: false if the last of them is over.
--      theirs_left: ms until the last hold of theirs expires, 0 for none; their_field: its field.
--      is_open: the head of the queue may be able to get K.
local readers, theirs_left, their_field = 0, 0, nil
if holder == '@SHARED@' then
  for _, token in ipairs(redis.call('ZRANGEBYSCORE', R, '-inf', now)) do
    redis.call('HDEL', K, token)
  end
  redis.call('ZREMRANGEBYSCORE', R, '-inf', now)
  -- Redisson makes K anew without R: who has no field there lost K, and a gap is for good.
  for _, token in ipairs(redis.call('ZRANGE', R, 0, -1)) do
    if redis.call('HEXISTS', K, token) == 0 then
      redis.call('ZREM', R, token)
    end
  end
  readers = redis.call('ZCARD', R)
  for _, field in ipairs(redis.call('HKEYS', K)) do
    local count = tonumber(redis.call('HGET', K, field))
    if count and not redis.call('ZSCORE', R, field) then
      local left = 0
      for i = 1, math.min(count, @MAX_ENTRIES@) do
        left = math.max(left, redis.call('PTTL', stem .. ':' .. field .. ':rwlock_timeout:' .. i))
      end
      readers = readers + (left > 0 and 1 or 0)
      if left > theirs_left then
        theirs_left, their_field = left, field
      end
    end
  end
  holder = readers > 0 and holder
end
local is_open = not holder or readers > 0
