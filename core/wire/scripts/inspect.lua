-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- INSPECT: what there is to know about a lock. It writes nothing.
--
-- KEYS: K, Q, F, I.
-- ARGV: limit, the most waiters to list (at most 256).
-- Returns {now, type, value, pttl, fence, count, waiters, info}. type: that of K, 'none' if it is
--         free. value: at most 256 bytes, '' if K is not a string. fence: 16 digits or ''. count:
--         of all waiters. waiters: {member, ticket, ...} in order. info: {field, value, ...}, empty
--         unless it is the present holder's own.
-- Statuses: RL_OK.
local K, Q, F, I = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
--@include fragments/time.lua
local kind, value = redis.call('TYPE', K).ok, ''
if kind == 'string' then
  value = redis.call('GETRANGE', K, 0, 255)
end
local waiters = {}
local limit = math.min(tonumber(ARGV[1]), @MAX_ENTRIES@)
if limit > 0 then
  waiters = redis.call('ZRANGE', Q, 0, limit - 1, 'WITHSCORES')
  for i = 2, #waiters, 2 do
    waiters[i] = string.format('%016.0f', waiters[i])
  end
end
local info = {}
if redis.pcall('HGET', I, 'token') == value then
  info = redis.call('HGETALL', I)
end
return {now, kind, value, redis.call('PTTL', K), redis.call('GET', F) or '',
  redis.call('ZCARD', Q), waiters, info}
