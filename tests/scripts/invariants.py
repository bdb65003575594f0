# SPDX-License-Identifier: Apache-2.0
# Copyright The redlatch authors
"""What must hold whenever a script has ended, as scripts that look."""

# Keys without expiry. What is written by every script must end by itself.
IMMORTAL = """
local found = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  if redis.call('PTTL', key) == -1 then found[#found + 1] = key end
end
return found
"""

# What must hold between K and R whenever a script has ended: K lives as long as the last of those
# who share it, and is never shared by nobody. In the hash format the count is never too low.
AGREES = """
local t = redis.call('TIME')
local now = t[1] * 1000 + (t[2] - t[2] % 1000) / 1000
local left, left_of_r = redis.call('PTTL', KEYS[1]), redis.call('PTTL', KEYS[2])
-- On a busy machine much time may pass within a script.
t = redis.call('TIME')
local slack = t[1] * 1000 + (t[2] - t[2] % 1000) / 1000 - now + 20
local kind = redis.call('TYPE', KEYS[1]).ok
local is_shared, count = false, 1
if kind == 'string' then
  local value = redis.call('GET', KEYS[1])
  is_shared = value == 'rl:shared'
  local out, only = string.match(value, '^rl:permits:(%d+)/%d+(.*)$')
  if out and only ~= '' then
    local permits = string.match(only, '^ ' .. string.rep('[%w_-]', 32) .. '(%d+)$')
    return permits ~= out and 'another number of permits' or left < 0 and 'no expiry' or ''
  end
  if out then
    is_shared, count = true, 0
    for _, entry in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
      count = count + string.sub(entry, 33)
    end
    if count ~= tonumber(out) then return 'another number of permits' end
  end
elseif kind == 'hash' and redis.call('HLEN', KEYS[1]) == 1 then
  local field = redis.call('HGETALL', KEYS[1])
  local first = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
  is_shared = first ~= nil and string.sub(first, 33) == field[1]
  count = tonumber(field[2])
end
if not is_shared then return '' end
local last = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')
if #last == 0 then
  -- Who was last may be over for a script's clock while K is not yet for the server's.
  return left > slack and 'shared by nobody' or ''
end
if kind == 'hash' and count < redis.call('ZCOUNT', KEYS[2], now, '+inf') then
  return 'the count is too low'
end
if math.abs(last[2] - now - left) > slack then return 'another expiry' end
if left_of_r > left + slack then return 'R outlives K' end
return ''
"""
