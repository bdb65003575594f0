-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- RECALL: ask the holders of K to finish; if there are more than 256, those whose leases
-- end first. Nothing is written, and nothing is forced. A client that does not know the message
-- ignores it.
--
-- KEYS: K, R.
-- ARGV: channel prefix, reason (for people; at most MAX_REASON_BYTES).
-- Returns {heard, now}: heard is the number of holders whose client the message has reached.
--      or {-1, now}: K has another format.
-- Statuses: RL_OK.
local K, R = KEYS[1], KEYS[2]
local prefix, reason = ARGV[1], ARGV[2]
--@include fragments/time.lua
--@include fragments/@FORMAT@/holder.lua
if type(holder) == 'table' then
  return {-1, now}
end
local tokens = {}
--@only string
if type(holder) == 'string' and string.find(holder, '^@PERMITS@%d+/%d+') then
  return {-1, now}
end
--@end
--@only string hash_rw
if holder == '@SHARED@' then
  tokens = redis.call('ZRANGEBYSCORE', R, '(' .. now, '+inf', 'LIMIT', 0, @MAX_ENTRIES@)
elseif holder then
  --@include fragments/string/is_ours.lua
  tokens = {is_ours and holder or nil}
end
--@end
--@only hash
-- R without the owner of K is a rest of earlier times.
local first = redis.call('ZRANGE', R, 0, 0)[1]
if holder and first and string.sub(first, @TOKEN_SIZE@ + 1) == holder then
  tokens = redis.call('ZRANGEBYSCORE', R, '(' .. now, '+inf', 'LIMIT', 0, @MAX_ENTRIES@)
end
--@end
--@only permits
tokens = {type(holder) == 'string' and string.match(holder, '^@PERMITS@%d+/%d+ ([%w_-]+)$') or nil}
if #tokens == 0 and holder then
  tokens = redis.call('ZRANGEBYSCORE', R, '(' .. now, '+inf', 'LIMIT', 0, @MAX_ENTRIES@)
end
--@end
local heard = 0
for _, token in ipairs(tokens) do
  local target, message = prefix .. string.sub(token, 1, @CID_SIZE@),
    'r' .. string.sub(token, @CID_SIZE@ + 1, @TOKEN_SIZE@) .. ':' .. reason
  local receivers = redis.pcall('@PUBLISH@', target, message)
  --@only sharded
  if type(receivers) == 'table' then
    -- Its slot may be at another node: the plain channel reaches all nodes.
    receivers = redis.pcall('PUBLISH', target, message)
  end
  --@end
  if type(receivers) == 'table' then
    return receivers
  end
  heard = heard + math.min(receivers, 1)
end
return {heard, now}
