-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- The fence of a grant: a new one with a new owner.
--
-- In:  F, us, holder, fence (nil, or minted by this script).
-- Out: number, 16 digits. fence.
local number = fence or (holder and redis.call('GET', F))
if not number then
  --@include fragments/mint.lua
  number = fence
end
