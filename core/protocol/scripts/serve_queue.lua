-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- SERVE QUEUE: give the lock to the waiters at the head that can have it, and notify the next one
-- when to poll. Sent when a reply said that there is more to do.
--
-- KEYS: K, Q, F, R; permits format: also W, which is the cap.
-- ARGV: channel prefix.
-- Returns {count, now, flags}. count: waiters that got the lock. flags: see grant.lua.
-- Statuses: none; it runs in the background.
local K, Q, F, R, W = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local prefix, me, lease, fence, window = ARGV[1], nil, nil, nil, nil
--@include fragments/@FORMAT@/holder.lua
--@include fragments/time.lua
--@include fragments/@FORMAT@/readers.lua
--@only permits
--@include fragments/permits/cap.lua
local is_head_told = false
--@end
--@include fragments/grant.lua
return {granted, now, flags}
