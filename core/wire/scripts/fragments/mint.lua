-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Mints the next fence: max(last + step, us), so that it rises also when F was lost. SET with GET
-- reads and writes in one command; the second SET is for a lock that changes hands faster than one
-- step each microsecond allows, or for a clock that went back.
--
-- In:  F, us, fence declared.
-- Out: fence, 16 digits.
fence = string.format('%016d', us)
local last = tonumber(redis.call('SET', F, fence, 'PX', '@FENCE_TTL_MS@', 'GET'))
if last and last + @FENCE_STEP@ > us then
  fence = string.format('%016d', last + @FENCE_STEP@)
  redis.call('SET', F, fence, 'PX', '@FENCE_TTL_MS@')
end
