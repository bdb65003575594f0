-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Serves the queue from its head, for as long as the next waiter can have K; one that cannot is
-- notified when to poll: the remaining time may be shorter than in the last notice, and a holder
-- whose host is gone sends nothing when that time ends.
--
-- A waiter whose channel has no subscriber is dead and skipped. An error of PUBLISH says nothing
-- about the waiter: it stays queued. The work of one call is bounded. An entry that is not of our
-- making counts as overdue: it must not stop the queue.
--
-- A waiter that polls ('+' in its entry) gets K for its provisional time, whatever PUBLISH says. A
-- live one finds the grant by its next poll, and a dead one blocks the queue no longer than that.
-- That time is at least two of its polls.
--
-- On a cluster the slot of a waiter's channel may be elsewhere: no sharded message reaches it from
-- here. The first such waiter that does not poll gets K for a moment once it can have it, and then
-- all such waiters behind it are notified by the plain channel, which reaches every node, and leave
-- the queue: many dead ones cost as much as one. A live one comes back to its place by its ticket,
-- with a channel of this node. Until K can be given to it, such a waiter keeps its place.
--
-- The entry leaves the queue before anything else is written, because a server without memory
-- refuses a script whose first write needs some.
--
-- K is written before the first message: a user that lacks a command for it is refused here, before
-- a waiter is notified of a grant that K does not have.
--
-- In:  K, Q, F, R, prefix, us, now, holder and readers (as if who gives K up in this script had
--      done so), theirs_left (hash_rw format), fence (nil, or minted by this script), window (what
--      is left of one, or false); me and lease: the caller's own queue entry and lease, whose turn
--      needs no message; or nil; permits format: cap; is_head_told, the entry that is first now
--      gets no `n`.
-- Out: holder, readers, fence; granted, the number of grants; own, the caller's own fence, or nil;
--      flags (1: more entries to look at, send SERVE QUEUE; 2: a publish was refused, or no fence
--      can be minted: the head is notified to poll). K is written.
local check = string.sub(redis.sha1hex(K), 1, 8)
local granted, own, looked, flags = 0, nil, 0, 0
local is_written, may_write, silent = false, false, nil
--@only permits
local place = 0
--@end
while true do
  --@only string hash hash_rw
  local head = redis.call('ZRANGE', Q, 0, 0, 'WITHSCORES')
  --@end
  --@only permits
  local head = redis.call('ZRANGE', Q, place, place, 'WITHSCORES')
  local is_kept = false
  --@end
  local member = head[1]
  if not member then
    break
  end
  if looked == @MAX_ENTRIES@ then
    flags = 1
    --@only permits
    -- More of them than one call looks at are not passed over: no call would get past them.
    flags = place < looked and 1 or 0
    --@end
    break
  end
  looked = looked + 1
  local is_me = member == me
  local token, mode = string.sub(member, 1, @TOKEN_SIZE@), string.sub(member, 33, 33)
  local provisional, polls = tonumber(string.sub(member, 34, 38)) or 0, false
  if string.sub(member, 34, 34) == '+' then
    provisional, polls = math.max(provisional, @LEAST_POLLED_MS@), true
  end
  local deadline = head[2] % @UPGRADE_TICKET@ / 1000 + (tonumber(string.sub(member, 39, 51)) or 0)
  local receivers, was_given = 0, false
  if is_me or (provisional > 0 and deadline >= now) then
    --@include fragments/@FORMAT@/can_have.lua
    --@only permits
    if is_passed and (is_me or place > 0 or (is_head_told and looked == 1)) then
      place, is_kept = place + 1, true
    elseif can_have and not window then
    --@end
    --@only string hash hash_rw
    if can_have and not window then
    --@end
      redis.call('ZREM', Q, member)
      local ms = is_me and tonumber(lease) or provisional
      --@only sharded
      if member == silent then
        --@include fragments/@FORMAT@/lend.lua
      end
      --@end
      --@include fragments/@FORMAT@/fence.lua
      if spoilt and is_me then
        return spoilt
      elseif spoilt then
        -- The waiter keeps its place; its own ACQUIRE says why.
        redis.pcall('@PUBLISH@', prefix .. string.sub(member, 1, 22),
          'n' .. string.sub(member, 23, 32) .. '00000')
        receivers = spoilt
      else
        --@include fragments/@FORMAT@/give.lua
        was_given, is_written = true, false
        if is_me then
          receivers, own = 1, number
        else
          if not may_write then
            --@include fragments/@FORMAT@/settle.lua
            is_written, may_write = true, true
          end
          -- A grant is for clients that this server counts. A client that has stayed at a server
          -- which is a replica now would believe a grant that is taken back here.
          pcall(redis.set_repl, redis.REPL_NONE)
          receivers = redis.pcall('@PUBLISH@', prefix .. string.sub(member, 1, 22),
            'g' .. string.sub(member, 23, 38) .. number .. string.format('%013d', now) .. check)
          pcall(redis.set_repl, redis.REPL_ALL)
          if receivers == 0 then
            -- That client hears this by replication. It asks, is refused, and connects again.
            redis.pcall('@PUBLISH@', prefix .. string.sub(member, 1, 22),
              'n' .. string.sub(member, 23, 32) .. '00000')
          end
          if polls then
            receivers = 1
          end
          --@only sharded
          if member == silent then
            --@include fragments/notify_silent.lua
            receivers = 1
          elseif type(receivers) == 'table' and
              string.find(receivers.err, 'access a non local key', 1, true) then
            -- It gets K again, for a shorter time.
            silent = member
          end
          --@end
        end
        if type(receivers) == 'table' or receivers == 0 then
          is_written = false
          --@include fragments/@FORMAT@/take_back.lua
        else
          granted = granted + 1
        end
      end
    elseif is_me then
      break
    elseif can_have ~= nil then
      --@only permits
      if is_head_told and looked == 1 then
        break
      end
      --@end
      --@include fragments/@FORMAT@/left.lua
      --@include fragments/@FORMAT@/is_ours.lua
      -- Other libraries send no message when they release: the head has to poll, and tracks K.
      left = window or (is_ours and left) or 0
      receivers = redis.pcall('@PUBLISH@', prefix .. string.sub(member, 1, 22),
        'n' .. string.sub(member, 23, 32) ..
        string.format('%05d', (left < 0 or left > 99999) and 99999 or left))
      if polls then
        receivers = 1
      end
      --@only sharded
      if silent and type(receivers) == 'table' and
          string.find(receivers.err, 'access a non local key', 1, true) then
        --@include fragments/notify_silent.lua
        receivers = 0
      end
      --@end
      --@only permits
      if is_passed and type(receivers) == 'number' and receivers > 0 then
        place, is_kept, receivers = place + 1, true, 0
      end
      --@end
      if receivers ~= 0 then
        flags = type(receivers) == 'table' and 2 or 0
        break
      end
    end
  end
  if type(receivers) == 'table' then
    redis.call('ZADD', Q, head[2], member)
    if type(redis.pcall('PEXPIRE', Q, '@QUEUE_TTL_MS@')) == 'table' then
      -- The waiter queues again with its ticket; a queue without an expiry would never go.
      redis.call('ZREM', Q, member)
    end
    if not was_given or member ~= silent then
      flags = 2
      break
    end
  end
  --@only string hash hash_rw
  if not was_given then
    redis.call('ZREM', Q, member)
  end
  --@end
  --@only permits
  if not was_given and not is_kept then
    redis.call('ZREM', Q, member)
  end
  --@end
end
if not is_written then
  --@include fragments/@FORMAT@/settle.lua
end
