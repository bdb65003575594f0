-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- The longest time until the waiter fits: until enough leases have ended, or the cap has. Most
-- waiters fit after a few leases. One that wants more than the cap serves those behind it when
-- the first lease ends.
--
-- In:  K, R, W, now, holder, readers, used, cap; permits and limit of the waiter.
-- Out: left, ms; < 0 without a limit.
local left, most = 0, math.min(limit, cap or limit)
if holder and readers == 0 then
  left = redis.call('PTTL', K)
else
  local is_over = tonumber(permits) > most
  local excess, place = is_over and most > 0 and math.min(used, 1) or used + permits - most, 0
  while excess > 0 and place < @MAX_ENTRIES@ do
    local ends = redis.call('ZRANGE', R, place, place + 7, 'WITHSCORES')
    for i = 1, #ends, 2 do
      if excess > 0 then
        excess = excess - (tonumber(string.sub(ends[i], @TOKEN_SIZE@ + 1)) or 0)
        left = math.max(ends[i + 1] - now, 0)
      end
    end
    place = #ends > 0 and place + 8 or @MAX_ENTRIES@
  end
  if is_over and used == 0 then
    left = redis.call('PTTL', W)
  elseif cap and left > 0 then
    left = math.min(left, redis.call('PTTL', W))
  end
end
