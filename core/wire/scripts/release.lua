-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- RELEASE: give the lock to the first live waiter, or free it. Nobody else's lock is ever touched.
--
-- KEYS: K, Q, F.
-- ARGV: token, channel prefix.
-- Returns {result, now, flags}. result: -1 not the owner, 1 freed, 1 + n handed to n waiters. A
--         non-owner that finds K free with waiters hands it on all the same. flags: see grant.lua.
-- Statuses: RL_OK; -1 is RL_E_LOST, or done if an earlier copy of this request got no answer.
local K, Q, F = KEYS[1], KEYS[2], KEYS[3]
--@include fragments/holder_string.lua
--@include fragments/time.lua
local is_owner = holder == ARGV[1]
if holder and not is_owner then
  return {-1, now, 0}
end
if redis.call('EXISTS', Q) == 0 then
  if is_owner then
    redis.call('DEL', K)
    return {1, now, 0}
  end
  return {-1, now, 0}
end

local prefix, me, lease, fence = ARGV[2], nil, nil, nil
local looked, flags = 0, 0
--@include fragments/grant.lua
if not is_owner then
  return {-1, now, flags}
end
return {holder and 2 or 1, now, flags}
