-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Counts who shares K: readers whose leases have not ended, each with an expiry of its own.
--
-- In:  K, R, now, holder.
-- Out: readers, their number; 0 unless K is shared. holder: false if the last of them is over.
--      is_open: the head of the queue may be able to get K.
local readers = 0
if holder == '@SHARED@' then
  redis.call('ZREMRANGEBYSCORE', R, '-inf', now)
  readers = redis.call('ZCARD', R)
  holder = readers > 0 and holder
end
local is_open = not holder or readers > 0
