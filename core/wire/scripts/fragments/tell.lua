-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Tells the head of the queue when to look again: the holder's time left may be shorter than what
-- the head was told before, and a holder whose host is gone says nothing when that time ends. A
-- head without receivers is dead: it is dropped and the next one is told.
--
-- In:  Q, prefix, me, now, ms (K's time left, -1 for ever), looked, flags.
-- Out: looked, flags.
local after = string.format('%05d', (ms < 0 or ms > 99999) and 99999 or ms)
while true do
  local head = redis.call('ZRANGE', Q, 0, 0, 'WITHSCORES')
  local member = head[1]
  if not member or member == me then
    break
  end
  if looked == @MAX_ENTRIES@ then
    flags = 1
    break
  end
  looked = looked + 1
  if head[2] / 1000 + (tonumber(string.sub(member, 39)) or 0) >= now then
    local receivers = redis.pcall('@PUBLISH@', prefix .. string.sub(member, 1, 22),
      'n' .. string.sub(member, 23, 32) .. after)
    if type(receivers) == 'table' then
      flags = 2
      break
    end
    if receivers > 0 then
      break
    end
  end
  redis.call('ZREM', Q, member)
end
