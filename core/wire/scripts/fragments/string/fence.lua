-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- The fence of a grant. Readers share the number above all that the last writer's client may have
-- used for passing the lock on, and below those of the next writer.
--
-- In:  F, us, mode, fence (nil, or minted by this script).
-- Out: number, 16 digits. fence.
local number
if mode == 's' then
  number = tonumber(redis.call('GET', F) or nil)
  if not number then
    --@include fragments/mint.lua
    number = fence
  end
  number = string.format('%016d', number + @FENCE_STEP@ - 1)
else
  if not fence then
    --@include fragments/mint.lua
  end
  number = fence
end
