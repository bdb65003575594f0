-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Notifies a holder whose token says that it can be recalled: its client may only retain the lock.
-- The head of the queue does so with each ACQUIRE, because a message may be lost, and a try that
-- finds no queue. Waiters behind the head do not: 1,000 of them are one recall.
--
-- In:  holder (a string, false or a table), prefix, token, me, rank (false: not queued), Q.
-- Out: recalled: 8 if the client of the holder got the message, else 0. It is among the flags.
local recalled = 0
if type(holder) == 'string' and (rank == 0 or (me == '' and redis.call('EXISTS', Q) == 0)) and
    #holder == @TOKEN_SIZE@ and string.byte(holder, @CID_SIZE@ + 1) > @LAST_PLAIN@ then
  local cid = string.sub(holder, 1, @CID_SIZE@)
  if cid ~= string.sub(token, 1, @CID_SIZE@) and string.find(cid, '[AQgw]$') then
    local receivers = redis.pcall('@PUBLISH@', prefix .. cid,
      'r' .. string.sub(holder, @CID_SIZE@ + 1))
    recalled = type(receivers) == 'number' and receivers > 0 and 8 or 0
  end
end
