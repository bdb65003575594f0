-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- UPGRADE: a reader becomes the one writer: at once if it is the only reader, else it waits at the
-- head of the queue, and continues to read. Resending it with the same arguments is harmless.
--
-- Two readers that wait to upgrade would wait for each other: the second one is refused.
--
-- The queue has at most one upgrade entry of a token. One that a late copy of an earlier UPGRADE
-- has left is not another reader's: this request replaces it. A try does so once it has K.
--
-- KEYS: K, Q, F, R.
-- ARGV: token, ttl_ms, member ('' tries only), ticket ('' for a new one), channel prefix.
-- Returns {1, fence, now}: the token has the lock alone, for at least ttl_ms and for what was
--         left of its lease as a reader.
--      or {0, pttl, now, ticket, rank, check, holder, type, flags}: as ACQUIRE: it still reads.
--         pttl: until the last lease of the others ends.
--      or {-1, now}: the token has nothing.
--      or {-2, now}: another live reader waits to upgrade.
-- Statuses: RL_OK; RL_BUSY or waiting; RL_E_LOST; RL_E_DEADLOCK.
local K, Q, F, R = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local token, lease, me, ticket, prefix = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local mode, fence, window = 'x', nil, nil
--@include fragments/@FORMAT@/holder.lua
--@include fragments/time.lua
--@include fragments/@FORMAT@/readers.lua
--@include fragments/@FORMAT@/mine.lua
if not is_mine then
  return {-1, now}
end
local mine, first = token .. 'u', redis.call('ZRANGE', Q, 0, 0)[1]
if first and first ~= me and string.sub(first, 1, 33) == mine and (me ~= '' or readers < 2) then
  redis.call('ZREM', Q, first)
end
if readers == 0 then
  --@include fragments/keep.lua
  --@include fragments/granted.lua
end
mode = 'u'
if readers == 1 then
  if me ~= '' then
    redis.call('ZREM', Q, me)
  end
  --@include fragments/take.lua
  --@include fragments/granted.lua
end
while true do
  local head = redis.call('ZRANGE', Q, 0, 0, 'WITHSCORES')
  local member = head[1]
  if not member or string.sub(member, 33, 33) ~= 'u' or string.sub(member, 1, 33) == mine then
    break
  end
  -- One that has given up, no longer reads, or is dead blocks no other. Nothing shows that one that
  -- polls ('+') is dead.
  local deadline = head[2] % @UPGRADE_TICKET@ / 1000 + (tonumber(string.sub(member, 39, 51)) or 0)
  if deadline >= now and redis.call('ZSCORE', R, string.sub(member, 1, @TOKEN_SIZE@)) then
    local receivers = redis.pcall('@PUBLISH@', prefix .. string.sub(member, 1, 22),
      'n' .. string.sub(member, 23, 32) .. '99999')
    if receivers ~= 0 or string.sub(member, 34, 34) == '+' then
      return {-2, now}
    end
  end
  redis.call('ZREM', Q, member)
end
if me ~= '' then
  --@include fragments/enqueue_upgrade.lua
else
  ticket = ''
end
--@include fragments/@FORMAT@/left.lua
window = left
local served = 0
--@include fragments/refusal.lua
