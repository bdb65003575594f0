-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- The fence of a grant: a new one. So it tells the order of the grants, and not who holds.
--
-- In:  F, us, fence (nil, or minted by this script).
-- Out: number, 16 digits; or spoilt, see fence_check.lua.
local number, spoilt
if not fence then
  --@include fragments/mint.lua
end
number, fence = fence, nil
