-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- ONCE BEGIN: the holder of K begins a run of this period, unless one has succeeded, or too many
-- have failed. A period begins with its first run. RELEASE notes a success; a run without one has
-- failed, also if its host has died.
--
-- A field of O is the text that names the period, '' without one. Its value is the mark, `STATE
-- SINCE TRIES ENDS RUN`: `r` a run has begun, `d` it has succeeded; since when, and when the period
-- ends, by this server's clock in ms; the number of runs; the last one, which is the token of its
-- caller and the hand-offs. So a repetition of this request is recognized by its run.
--
-- A run may last longer than its period. A caller that has waited for its end is skipped all the
-- same, so a success is kept for a while after the period; other marks of the past are removed.
--
-- KEYS: K, O.
-- ARGV: token, hand-offs of the lease inside its client, text, ms for which a success is
--       remembered, most tries, ms for which the caller has waited for the lock.
-- Returns {result, now, ends}. result: 1 the run has begun; 2 one has succeeded before; 3 the tries
--         are used up; 4 too many texts of this name are remembered; 0 no token holds K, -1 another
--         one does. ends: with 1 to 3, when the period ends.
-- Statuses: RL_OK; 2 and 3 are RL_SKIPPED; 4 is RL_E_INVALID; 0 and -1 are RL_E_LOST.
local K, O = KEYS[1], KEYS[2]
local token, text, run = ARGV[1], ARGV[3], ARGV[1] .. ARGV[2]
--@include fragments/string/holder.lua
--@include fragments/time.lua
if holder ~= token then
  return {type(holder) == 'string' and -1 or 0, now, 0}
end
local count = redis.call('HLEN', O)
if count > @MAX_MARKS@ then
  return {4, now, 0}
end
local tries, ends, is_known = 0, now + ARGV[4], false
local marks = redis.call('HGETALL', O)
for i = 1, #marks, 2 do
  local state, since, tried, till, last =
    string.match(marks[i + 1], '^([rd]) (%d+) (%d+) (%d+) (%S+)$')
  since, till = tonumber(since) or 0, tonumber(till) or 0
  if till > now + @MAX_EVERY_MS@ then
    till = 0
  end
  if marks[i] == text then
    is_known = true
    if state == 'r' and last == run then
      return {1, now, till}
    elseif state == 'd' and (till > now or since > now - ARGV[6]) then
      return {2, now, till}
    elseif till > now then
      tries, ends = tonumber(tried), till
      if tries >= tonumber(ARGV[5]) then
        return {3, now, ends}
      end
    end
  elseif till <= now and (state ~= 'd' or since + @MARK_KEPT_MS@ <= now) then
    count = count - redis.call('HDEL', O, marks[i])
  end
end
if not is_known and count >= @MAX_MARKS@ then
  return {4, now, 0}
end
-- PEXPIREAT first, and without an effect: a user that may not set an expiry must not leave O.
local latest = string.format('%.0f', math.max(now + redis.call('PTTL', O), ends))
redis.call('PEXPIREAT', O, latest)
redis.call('HSET', O, text, string.format('r %.0f %d %.0f %s', now, tries + 1, ends, run))
redis.call('PEXPIREAT', O, latest)
return {1, now, ends}
