-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- RAISE FENCE: make F at least the highest fence that the servers of a quorum gave, so that this
-- one mints above it. It never lowers F, because it may be a late copy, and leaves it alone when
-- the token has lost K: then the fence is of no use.
--
-- KEYS: K, F.
-- ARGV: token, fence (16 digits).
-- Returns {1, now}: F is at least the fence.
--      or {0, now}: the token does not hold K, and nothing was written.
-- Statuses: none; a fence that most servers confirmed may be used.
local K, F = KEYS[1], KEYS[2]
local token, fence = ARGV[1], tonumber(ARGV[2])
--@include fragments/string/holder.lua
--@include fragments/time.lua
if holder ~= token then
  return {0, now}
end
local last, spoilt = redis.pcall('GET', F), nil
--@include fragments/fence_check.lua
if spoilt then
  return spoilt
end
if not last or last < fence then
  redis.call('SET', F, string.format('%016d', fence), 'PX', '@FENCE_TTL_MS@')
end
return {1, now}
