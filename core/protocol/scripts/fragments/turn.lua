-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Decides whether a freed K is left to libraries that poll. W is `count missed from ms`: the number
-- of redlatch grants in a row; the windows opened since a foreign holder was seen; the time since
-- when redlatch clients have K, or a window began; and the length of that window (0: redlatch
-- clients have K). A foreign holder makes W, and so does a client with a yield_every above 0. The
-- count is `-` where no foreign holder was seen, as in a turn of Redisson's. The count is `p` after
-- a search; such a W stays, so that no other search begins before it expires.
--
-- Redlatch clients have K for at least the length of one window. After an unused window the next
-- one comes after twice as many grants, and after several unused windows there are no more.
--
-- In:  W, now, yield_every, length, grants (see release.lua), window (ms that are left to Redisson,
--      or false).
-- Out: window: 0 if one for those that poll begins: who waits looks at once, has K watched, and so
--      sees who takes it. turn: what W becomes, '' for nothing; turn_ms: for how long.
local mark = redis.pcall('GET', W)
local count, missed, from, ms = string.match(type(mark) == 'string' and mark or '',
  '^(%d+) (%d+) (%d+) (%d+)$')
local is_marked = count ~= nil
local is_counted = yield_every > 0 or (yield_every < 0 and is_marked)
missed, from = tonumber(missed) or 0, (from or 0) + (ms or 0)
turn, turn_ms = '', (is_counted or is_marked) and @QUEUE_TTL_MS@ or window
if is_counted then
  count = (count or 0) + grants
  local is_due = count >= yield_every
  if yield_every < 0 then
    is_due = count >= @YIELD_EVERY@ * 2 ^ missed and now >= from + length
  end
  if is_due then
    count, missed = 0, yield_every > 0 and missed or missed + 1
    if yield_every > 0 or missed <= @YIELD_LIMIT@ then
      window = 0
    elseif not window then
      turn_ms = false
    end
  end
end
if turn_ms then
  length = window == 0 and length or window or 0
  turn = (count or '-') .. ' ' .. missed .. ' ' .. (window and now or from) .. ' ' .. length
elseif type(mark) == 'string' and string.sub(mark, 1, 1) == 'p' then
  turn = nil
end
