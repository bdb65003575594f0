-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Gives K to the first live waiter, or leaves it free. Included where K is free, or is held by who
-- gives it up in this script.
--
-- A waiter that nobody receives messages for is dead and skipped. An error of PUBLISH says nothing
-- about the waiter: it stays queued and K is freed. The work of one call is bounded. An entry that
-- is not of our making counts as overdue: it must not stop the queue.
--
-- The entry leaves the queue before anything else is written, because a server without memory
-- refuses a script whose first write needs some.
--
-- In:  K, Q, F, prefix, us, now, fence (nil, or minted by this script), flags and looked (both 0);
--      me and lease: the caller's own queue entry and lease, whose turn needs no message; or nil.
-- Out: holder (the new one, or false), fence, flags (1: more entries to look at, send KICK; 2: a
--      publish was refused).
local check = string.sub(redis.sha1hex(K), 1, 8)
local ms
holder = false
while true do
  if looked == @MAX_ENTRIES@ then
    flags = redis.call('EXISTS', Q)
    break
  end
  looked = looked + 1
  local head = redis.call('ZPOPMIN', Q)
  local member = head[1]
  if not member then
    break
  end
  local is_me = member == me
  local claim = tonumber(string.sub(member, 34, 38)) or 0
  local deadline = head[2] / 1000 + (tonumber(string.sub(member, 39)) or 0)
  if is_me or (claim > 0 and deadline >= now) then
    if not fence then
      --@include fragments/fence.lua
    end
    holder = string.sub(member, 1, 32)
    ms = is_me and tonumber(lease) or claim
    redis.call('SET', K, holder, 'PX', ms)
    if is_me then
      break
    end
    local receivers = redis.pcall('@PUBLISH@', prefix .. string.sub(member, 1, 22),
      string.format('g%s%s%013d%s', string.sub(member, 23, 38), fence, now, check))
    if type(receivers) == 'table' then
      redis.call('ZADD', Q, head[2], member)
      redis.call('PEXPIRE', Q, '@QUEUE_TTL_MS@')
      holder, flags = false, 2
      break
    end
    if receivers > 0 then
      break
    end
    holder = false
  end
end
if holder then
  --@include fragments/tell.lua
else
  redis.call('DEL', K)
end
