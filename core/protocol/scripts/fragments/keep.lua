-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- The token has K already, alone or as one of several: this is a repetition.
--
-- In:  K, Q, F, R, us, now, holder, readers, fence, me, mode, token, lease, owner (hash format).
-- Out: number. K is written.
if me ~= '' then
  redis.call('ZREM', Q, me)
end
--@include fragments/@FORMAT@/prolong.lua
fence = nil
do
  local last, spoilt = redis.pcall('GET', F), nil
  --@include fragments/fence_check.lua
  if spoilt then
    return spoilt
  end
  fence = last and string.format('%016d', last)
end
--@only permits
-- F may have that of another holder by now. A new one is above it, too.
fence = nil
--@end
--@include fragments/@FORMAT@/fence.lua
