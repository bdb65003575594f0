-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- LIST: one step over all keys, and which of them are locks held by a client of ours. Keys that
-- other programs keep in the same database are not shown (a foreign lock looks like any text), nor
-- those that this user may not read, nor those longer than a namespace and a name.
--
-- KEYS: none; it looks at what SCAN finds.
-- ARGV: cursor, pattern of SCAN, count of SCAN (at most 256).
-- Returns {next cursor, keys}. '0' ends it. A key that stays is found at least once.
-- Statuses: RL_OK; RL_END.
local step = redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', ARGV[3], 'TYPE', 'string')
local found = {}
for _, key in ipairs(step[2]) do
  -- A longer one is no lock, and many of them would make a reply that is refused.
  local size = #key <= 1152 and redis.pcall('STRLEN', key)
  if size == @TOKEN_SIZE@ or size == #'@SHARED@' then
    local holder = redis.pcall('GET', key)
    --@include fragments/string/is_ours.lua
    if is_ours then
      found[#found + 1] = key
    end
  end
end
return {step[1], found}
