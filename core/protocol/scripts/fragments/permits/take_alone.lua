-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Gives permits to the caller while no other holder has any. K alone is written: so a semaphore
-- that one caller at a time uses costs what a mutex costs.
--
-- In:  K, F, us, now, fence, token, permits, lease; ARGV[6], permits/limit.
-- Out: number. It returns if no fence can be minted.
--@include fragments/permits/fence.lua
if spoilt then
  return spoilt
end
redis.call('SET', K, '@PERMITS@' .. ARGV[6] .. ' ' .. token .. permits, 'PX', lease)
