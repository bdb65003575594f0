-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Mints the next fence: max(last + step, us), so that it rises also when F was lost. SET with GET
-- reads and writes in one command; the second SET is for a lock that changes hands faster than one
-- step each microsecond allows, or for a clock that went back; or it puts back what is no fence.
--
-- In:  F, us, fence and spoilt declared.
-- Out: fence, 16 digits; or spoilt, see fence_check.lua, and fence as it was.
local minted = string.format('%016d', us)
local last = redis.pcall('SET', F, minted, 'PX', '@FENCE_TTL_MS@', 'GET')
local before = last
--@include fragments/fence_check.lua
if not spoilt then
  if last and last + @FENCE_STEP@ > us then
    minted = string.format('%016d', last + @FENCE_STEP@)
    redis.call('SET', F, minted, 'PX', '@FENCE_TTL_MS@')
  end
  fence = minted
elseif type(before) == 'string' then
  redis.call('SET', F, before, 'PX', '@FENCE_TTL_MS@')
end
