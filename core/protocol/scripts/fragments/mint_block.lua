-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- The answer to a caller that may retain the lock, which was free, without waiters and without a
-- mark of other libraries. It gets a block of fences for local acquisitions, so that these need no
-- call: F becomes as high as if each of them had been a grant. A block that would make F run ahead
-- of the clock has only the numbers of a usual grant.
--
-- In:  F, us, now, number.
-- Out: none; it returns.
local fences = @FENCE_STEP@
if number - us <= @FENCE_LEAD_US@ then
  local last = string.format('%016d', number + @FENCE_BLOCK@ - @FENCE_STEP@)
  if not redis.pcall('SET', F, last, 'PX', '@FENCE_TTL_MS@').err then
    fences = @FENCE_BLOCK@
  end
end
return {1, number, now, fences}
