-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- INSPECT: read what there is to know about a lock, and write nothing.
--
-- KEYS: K, Q, F, I, R; permits format: also W, which is the cap; string format: also O and E.
-- ARGV: limit, the most waiters and holders to list (at most MAX_INFO_ROWS).
-- Returns {now, type, value, pttl, fence, waiting, waiters, info, holding, holders, owner count}.
--         type: that of K, 'none' if it is free. value: at most 256 bytes, '' if K is no lock; hash
--         format: the owner. fence: 16 digits or ''. waiting: how many. waiters: {member, ticket,
--         ...} in order. info: {field, value, ...}, empty unless it is the present holder's own.
--         Each text is cut, so that a reply stays below 1 MiB whatever others wrote to the keys.
--         holding: how many share K; hash_rw format: as K has it. holders: of ours, {token, expiry
--         in ms, ...}; permits format: its permits behind the token. owner count: hash format: the
--         count in K; permits format: the permits that are out; and then the cap, -1 without one,
--         and the ms until its end, -1 without an end of its own. string format: and then {text,
--         mark, ...}, see once_begin.lua; empty with more of them than ONCE BEGIN writes; and {id,
--         ...}, see candidate.lua: that of the holder, and those of the waiters; '' for one that
--         is no candidate. Empty if none is.
-- Statuses: RL_OK.
local K, Q, F, I, R, W = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
--@include fragments/time.lua
local limit = math.min(tonumber(ARGV[1]), @MAX_ENTRIES@)
local kind, value, count = redis.call('TYPE', K).ok, '', 0
local holding, holders = 0, {}
--@only string
local is_shared = false
if kind == 'string' then
  value = redis.call('GETRANGE', K, 0, 255)
  is_shared = value == '@SHARED@'
end
--@end
--@only hash
local is_shared = kind == 'hash' and redis.call('HLEN', K) == 1
if is_shared then
  local field = redis.call('HGETALL', K)
  value, count = string.sub(field[1], 1, 256), tonumber(field[2]) or 0
  local first = redis.call('ZRANGE', R, 0, 0)[1]
  is_shared = first ~= nil and string.sub(first, @TOKEN_SIZE@ + 1) == field[1]
end
--@end
--@only hash_rw
local is_shared = false
if kind == 'hash' then
  --@include fragments/hash_rw/holder.lua
  is_shared = holder == '@SHARED@'
  value = type(holder) == 'string' and string.sub(holder, 1, 256) or ''
end
--@end
--@only permits
local is_shared = false
if kind == 'string' then
  value = redis.call('GETRANGE', K, 0, 255)
  local shown, used, alone = string.match(value, '^(@PERMITS@(%d+)/%d+)(.*)$')
  is_shared = used ~= nil
  value, count = shown or value, tonumber(used or 0)
  alone = is_shared and string.match(alone, '^ ([%w_-]+)$')
  if alone then
    is_shared, holding = false, 1
    holders = {alone, string.format('%013.0f', now + redis.call('PTTL', K))}
  elseif is_shared then
    --@include fragments/permits/count_ended.lua
    count = count - ended
  end
end
--@end
if is_shared then
  holding = redis.call('ZCOUNT', R, '(' .. now, '+inf')
  holders = redis.call('ZRANGEBYSCORE', R, '(' .. now, '+inf', 'WITHSCORES', 'LIMIT', 0, limit)
  for i = 1, #holders, 2 do
    --@only string hash hash_rw
    holders[i] = string.sub(holders[i], 1, @TOKEN_SIZE@)
    --@end
    --@only permits
    holders[i] = string.sub(holders[i], 1, 2 * @TOKEN_SIZE@)
    --@end
    holders[i + 1] = string.format('%013.0f', holders[i + 1])
  end
  --@only hash_rw
  holding = redis.call('HLEN', K) - 1
  --@end
end
local waiters = {}
if limit > 0 then
  waiters = redis.call('ZRANGE', Q, 0, limit - 1, 'WITHSCORES')
  for i = 1, #waiters, 2 do
    waiters[i] = string.sub(waiters[i], 1, 320)
    waiters[i + 1] = string.format('%016.0f', waiters[i + 1] % @UPGRADE_TICKET@)
  end
end
local info = {}
if redis.pcall('HGET', I, 'token') == value then
  for _, field in ipairs({'token', 'who', 'label', 'since', 'id', 'fence'}) do
    local text = redis.call('HGET', I, field)
    if text then
      info[#info + 1] = field
      info[#info + 1] = string.sub(text, 1, 256)
    end
  end
end
--@only string
local marks, O = {}, KEYS[6]
local mark_count = redis.pcall('HLEN', O)
if type(mark_count) == 'number' and mark_count > 0 and mark_count <= @MAX_MARKS@ then
  marks = redis.call('HGETALL', O)
  for i = 1, #marks do
    marks[i] = string.sub(marks[i], 1, 256)
  end
end
local ids, E = {}, KEYS[7]
local id_count = redis.pcall('HLEN', E)
if type(id_count) == 'number' and id_count > 0 then
  for i = -1, #waiters - 1, 2 do
    local token = i > 0 and string.sub(waiters[i], 1, @TOKEN_SIZE@) or value
    ids[#ids + 1] = string.sub(redis.call('HGET', E, token) or '', 1, 256)
  end
end
return {now, kind, value, redis.call('PTTL', K), redis.call('GETRANGE', F, 0, 63),
  redis.call('ZCARD', Q), waiters, info, holding, holders, count, marks, ids}
--@end
--@only hash hash_rw
return {now, kind, value, redis.call('PTTL', K), redis.call('GETRANGE', F, 0, 63),
  redis.call('ZCARD', Q), waiters, info, holding, holders, count}
--@end
--@only permits
--@include fragments/permits/cap.lua
return {now, kind, value, redis.call('PTTL', K), redis.call('GETRANGE', F, 0, 63),
  redis.call('ZCARD', Q), waiters, info, holding, holders, count, cap or -1,
  is_cap_timed and redis.call('PTTL', W) or -1}
--@end
