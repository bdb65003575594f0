-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Recalls the holder, or each reader; of many readers those whose leases end first. Among these are
-- the ones that are only retained, because no client renews them.
--
-- In:  holder (a string), readers, R, prefix, asker (the token for which it is done, or '').
-- Out: heard: how many messages reached another client.
local heard = 0
local tokens = readers > 0 and redis.call('ZRANGE', R, 0, @MAX_ENTRIES@ - 1) or {holder}
for _, one in ipairs(tokens) do
  local cid = string.sub(one, 1, @CID_SIZE@)
  local is_other = cid ~= string.sub(asker, 1, @CID_SIZE@)
  -- A client hands its own lock off without a message, but does not know all of its readers.
  local is_asked = one ~= asker and (is_other or readers > 0)
  if is_asked and #one == @TOKEN_SIZE@ and string.byte(one, @CID_SIZE@ + 1) > @LAST_PLAIN@ and
      string.find(cid, '[AQgw]$') then
    local rid = string.sub(one, @CID_SIZE@ + 1)
    local receivers = redis.pcall('@PUBLISH@', prefix .. cid, 'r' .. rid)
    if is_other and type(receivers) == 'number' then
      heard = heard + receivers
    end
  end
end
