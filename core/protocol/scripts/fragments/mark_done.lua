-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Notes that the run of this caller has succeeded: see once_begin.lua. The mark of another run
-- stays as it is. Without a mark the run has lasted longer than its period, or was forgotten: then
-- a success counts only for callers that have waited for it.
--
-- The release does not depend on it: its answer says that nothing was noted. PEXPIREAT comes first,
-- because a server without memory allows HSET behind it.
--
-- In:  O, text, run, now, unnoted (0).
-- Out: unnoted: 4 if nothing could be noted.
local mark = redis.pcall('HGET', O, text)
local tries, ends, last = '1', string.format('%.0f', now), run
if type(mark) == 'string' then
  tries, ends, last = string.match(mark, '^r %d+ (%d+) (%d+) (%S+)$')
end
unnoted = 4
if type(mark) ~= 'table' and last == run then
  local left = redis.pcall('PTTL', O)
  local latest = string.format('%.0f', now + math.max(tonumber(left) or 0, @MARK_KEPT_MS@))
  redis.pcall('PEXPIREAT', O, latest)
  mark = redis.pcall('HSET', O, text, string.format('d %.0f %s %s %s', now, tries, ends, run))
  if type(mark) == 'number' then
    unnoted = 0
    redis.call('PEXPIREAT', O, latest)
  end
end
