-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- ACQUIRE READ: share the lock with other readers, or queue for it. Resending it with the
-- same arguments is harmless. A reader overtakes a waiting writer only if its sibling,
-- another lease of its owner, reads already: it would wait for itself.
--
-- KEYS: K, Q, F, R, W.
-- ARGV: token, ttl_ms, member ('' tries only and never queues), ticket ('' for a new one),
--       channel prefix, token of a sibling ('' for none).
-- Returns as ACQUIRE. The count is 1 if the holder may retain the lock: readers share a fence.
-- Statuses: RL_OK; RL_BUSY or waiting; RL_E_WRONG_TYPE.
local K, Q, F, R, W = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local token, lease, me, ticket, prefix = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local mode, fence, sibling = 's', nil, ARGV[6]
--@include fragments/time.lua
--@include fragments/@FORMAT@/holder.lua
--@include fragments/@FORMAT@/readers.lua
--@include fragments/@FORMAT@/mine.lua
if is_mine then
  --@include fragments/keep.lua
  --@include fragments/granted.lua
end
local may_pass = readers > 0 and sibling ~= '' and redis.call('ZSCORE', R, sibling)
local window, is_first = false, false
--@only string
is_first = not holder and redis.call('EXISTS', Q, W) == 0
if not holder and not is_first then
  --@include fragments/window.lua
end
--@end
--@only hash_rw
if is_open then
  --@include fragments/window.lua
end
--@end
if may_pass or is_first or (is_open and not window and redis.call('EXISTS', Q) == 0) then
  if me ~= '' then
    redis.call('ZREM', Q, me)
  end
  --@include fragments/take.lua
  --@only string
  --@include fragments/may_retain.lua
  if may_retain then
    return {1, number, now, 1}
  end
  --@end
  --@include fragments/granted.lua
end
--@include fragments/wrong_type.lua
if wrong_type then
  return {0, redis.call('PTTL', K), now, '', -1, string.sub(redis.sha1hex(K), 1, 8), '',
    wrong_type, 0}
end
--@include fragments/line_up.lua
local served = 0
if has_new_head then
  --@include fragments/grant.lua
  served = flags
  if own then
    local number = own
    --@include fragments/granted.lua
  end
  if (not holder or readers > 0) and flags == 0 and not window and redis.call('EXISTS', Q) == 0 then
    -- Only a try finds an empty queue here: all in it were dead.
    --@include fragments/take.lua
    --@include fragments/granted.lua
  end
end
--@include fragments/refusal.lua
