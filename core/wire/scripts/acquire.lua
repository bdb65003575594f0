-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- ACQUIRE: take the lock, or stand in its queue. Resending it with the same arguments is harmless.
--
-- KEYS: K, Q, F, and W by clients that leave libraries which poll their turn.
-- ARGV: token, lease_ms, member ('' tries only and never queues), ticket ('' for a new one),
--       channel prefix.
-- Returns {1, fence, now}: held by the token, for at least lease_ms from now.
--      or {0, pttl, now, ticket, rank, check, holder, type}: not held. ticket: '' if not queued.
--         rank: 0 is the head, -1 not queued. check: first 8 digits of sha1(K). holder: at most 64
--         bytes of K's value, '' if it is not a string. type: that of K; 'none' means that K is
--         free and could not be given away in this call, so look again soon (KICK, or ACQUIRE);
--         with a pttl >= 0 it is left to others for that long.
-- Statuses: RL_OK; RL_BUSY or waiting.
local K, Q, F, W = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local token, lease, fence = ARGV[1], ARGV[2], nil
--@include fragments/time.lua
-- What is left of a window in which a free K is not ours to take.
local window = W and redis.pcall('GET', W) == 'w' and redis.call('PTTL', W)
-- The usual case first: one command where reading K and looking for a queue would be two.
if not window and redis.call('EXISTS', K, Q) == 0 then
  --@include fragments/fence.lua
  redis.call('SET', K, token, 'PX', lease)
  return {1, fence, now}
end
--@include fragments/holder_string.lua
window = not holder and window

local me, ticket, prefix = ARGV[3], ARGV[4], ARGV[5]
if holder == token then
  -- A late copy must not cut a newer, longer lease.
  if me ~= '' then
    redis.call('ZREM', Q, me)
  end
  if redis.call('PTTL', K) < tonumber(lease) then
    redis.call('PEXPIRE', K, lease)
  end
  fence = redis.call('GET', F)
  if not fence then
    --@include fragments/fence.lua
  end
  return {1, fence, now}
end

if me ~= '' then
  --@include fragments/enqueue.lua
else
  ticket = ''
end
if W and holder then
  -- They had their turn: the next window is as many grants away as the first.
  --@include fragments/is_ours.lua
  if not is_ours then
    redis.call('DEL', W)
  end
end
local looked, flags = 0, 0
if not holder and not window then
  --@include fragments/grant.lua
  if holder == token then
    return {1, fence, now}
  end
  if not holder and flags == 0 then
    -- Only a try finds an empty queue here: everybody in it was dead.
    if not fence then
      --@include fragments/fence.lua
    end
    redis.call('SET', K, token, 'PX', lease)
    return {1, fence, now}
  end
else
  --@include fragments/drop_overdue.lua
  if has_new_head then
    local ms = window or redis.call('PTTL', K)
    --@include fragments/tell.lua
  end
end

local kind, value = 'none', ''
if type(holder) == 'table' then
  kind = redis.call('TYPE', K).ok
elseif holder then
  kind, value = 'string', string.sub(holder, 1, 64)
end
return {0, window or redis.call('PTTL', K), now, ticket, redis.call('ZRANK', Q, me) or -1,
  string.sub(redis.sha1hex(K), 1, 8), value, kind}
