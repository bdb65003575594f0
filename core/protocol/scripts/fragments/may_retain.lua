-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- True if the client of the token, which has K, may retain it: it can be recalled, no other client
-- waits, and nothing shows that another library uses K. A search has left W if it found none.
--
-- In:  Q, W, token.
-- Out: may_retain.
local may_retain = false
if string.byte(token, @CID_SIZE@ + 1) > @LAST_PLAIN@ and redis.call('EXISTS', Q) == 0 then
  local mark = redis.pcall('GET', W)
  may_retain = not mark or (type(mark) == 'string' and string.sub(mark, 1, 1) == 'p')
end
