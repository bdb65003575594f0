-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- FORCE RELEASE: take the lock from all holders, or from one token. The fence rises, so that a
-- resource which checks fences can refuse the old holder; its next EXTEND reports the loss. Do not
-- resend it: the next holder would lose the lock.
--
-- KEYS: K, Q, F, R; permits format: also W, which is the cap.
-- ARGV: expected token ('' or the value of K for all holders), channel prefix.
-- Returns {result, now, flags}. result: 1 done, 0 nothing was held, -1 held by another token than
--         expected or in another format, and untouched. flags: see grant.lua.
--      or {-2, now, 0, type}: K has a type that no lock has, and is untouched.
-- Statuses: RL_OK; 0 and -1 are RL_E_NOT_HELD; -2 is RL_E_WRONG_TYPE.
local K, Q, F, R, W = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local token, prefix, me, lease, fence, window = ARGV[1], ARGV[2], nil, nil, nil, nil
--@include fragments/@FORMAT@/holder.lua
--@include fragments/time.lua
--@include fragments/@FORMAT@/readers.lua
--@include fragments/wrong_type.lua
if wrong_type then
  return {-2, now, 0, wrong_type}
end
--@only string
-- A semaphore is of another format.
if type(holder) == 'string' and string.find(holder, '^@PERMITS@%d+/%d+') then
  holder = {}
end
--@end
--@only hash
-- The owner of every acquisition in R is the holder: it need not be named. A field without a count
-- is data of another program.
local owner = holder
if type(owner) == 'string' and not string.match(redis.call('HGET', K, owner), '^[1-9]%d*$') then
  holder = {}
end
--@end
--@only hash_rw
-- So is a mode without the field of a writer.
if holder == 'write' then
  holder = {}
end
--@end
--@only permits
-- A K of another format is no semaphore. The number of permits of a token is in its entry.
--@include fragments/permits/cap.lua
local permits, is_head_told = '', false
if holder and readers == 0 then
  holder = {}
end
local place = token ~= '' and 0 or readers
while place < readers do
  for _, entry in ipairs(redis.call('ZRANGE', R, place, place + 999)) do
    if string.sub(entry, 1, @TOKEN_SIZE@) == token then
      permits = string.sub(entry, @TOKEN_SIZE@ + 1)
    end
  end
  place = permits == '' and place + 1000 or readers
end
--@end
local result = 0
if holder then
  --@include fragments/@FORMAT@/mine.lua
  if type(holder) == 'table' or (token ~= '' and not is_mine and holder ~= token) then
    return {-1, now, 0}
  end
  local last, spoilt = redis.pcall('GET', F), nil
  --@include fragments/fence_check.lua
  if spoilt then
    return spoilt
  end
  result = 1
  --@only string
  -- A client that only retains the lock must not give it to its next caller.
  if type(holder) == 'string' then
    local asker = ''
    --@include fragments/recall_each.lua
  end
  --@end
  if token == '' or token == holder then
    -- DEL comes first: it is a write that a server without memory allows.
    redis.call('DEL', K, R)
    holder, readers = false, 0
    --@only hash_rw
    theirs_left = 0
    --@end
    --@only permits
    used = 0
    --@end
  else
    --@include fragments/@FORMAT@/drop.lua
  end
  --@include fragments/mint.lua
end
--@include fragments/grant.lua
--@only hash hash_rw
if result == 1 then
  local was_writer = true
  --@include fragments/@FORMAT@/channel.lua
  --@include fragments/@FORMAT@/tell_redisson.lua
end
--@end
return {result, now, flags}
