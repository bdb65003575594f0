-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- KICK: repair. A free lock goes to the first live waiter; of a held one the head is told when to
-- look again. Sent when a reply said that there is more to do.
--
-- KEYS: K, Q, F.
-- ARGV: channel prefix.
-- Returns {count, now, flags}. count: waiters that got the lock. flags: see grant.lua.
-- Statuses: none; it runs in the background.
local K, Q, F = KEYS[1], KEYS[2], KEYS[3]
local prefix, me, lease, fence = ARGV[1], nil, nil, nil
--@include fragments/holder_string.lua
--@include fragments/time.lua
local looked, flags = 0, 0
local count = 0
if not holder then
  --@include fragments/grant.lua
  count = holder and 1 or 0
else
  local ms = redis.call('PTTL', K)
  --@include fragments/tell.lua
end
return {count, now, flags}
