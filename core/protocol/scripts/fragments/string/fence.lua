-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- The fence of a grant. Readers share the number above all that the last writer's client may have
-- used for passing the lock on, and below those of the next writer.
--
-- In:  F, us, mode, fence (nil, or minted by this script).
-- Out: number, 16 digits, and fence; or spoilt, see fence_check.lua.
local number, spoilt
if mode == 's' then
  local last = redis.pcall('GET', F)
  --@include fragments/fence_check.lua
  number = last
  if not last and not spoilt then
    --@include fragments/mint.lua
    number = fence
  end
  number = not spoilt and string.format('%016d', number + @FENCE_STEP@ - 1)
else
  if not fence then
    --@include fragments/mint.lua
  end
  number = fence
end
