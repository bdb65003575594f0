-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- The fence of a grant: a new one with a new owner.
--
-- In:  F, us, holder, fence (nil, or minted by this script).
-- Out: number, 16 digits, and fence; or spoilt, see fence_check.lua.
local number, spoilt = fence, nil
if not number and holder then
  local last = redis.pcall('GET', F)
  --@include fragments/fence_check.lua
  number = last and string.format('%016d', last)
end
if not number and not spoilt then
  --@include fragments/mint.lua
  number = fence
end
