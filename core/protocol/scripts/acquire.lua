-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- ACQUIRE: take the lock alone, or queue for it. Resending it with the same arguments is
-- harmless: a token that has K keeps it and its fence, for at least ttl_ms from now. In the hash
-- format the owner that has the lock takes it once more, past the queue.
--
-- KEYS: K, Q, F, R, W; permits format: W is the cap; string format, for a candidate: and then E.
-- ARGV: token, ttl_ms, member ('' tries only and never queues), ticket ('' for a new one),
--       channel prefix; hash format: owner; permits format: permits/limit, how many it wants and
--       how many may be out with them; string format, for a candidate: its id.
-- Returns {1, fence, now}: held by the token, for at least ttl_ms from now.
--      or {1, fence, now, count}: the same. Hash format: count is the number of holds of the owner,
--         this one included. String format: the lock was free and without waiters, and its holder
--         may retain it; count is the number of fences, from this one on, for its acquisitions.
--      or {0, pttl, now, ticket, rank, check, holder, type, flags[, reader]}: not held. pttl: of K,
--         -1 without an expiry, -2 without K. ticket: '' if not queued. rank: 0 is the head, -1 not
--         queued. check: first 8 digits of sha1(K). holder: at most 64 bytes of K's value, '' if it
--         is not a lock; hash format: a token of its owner, or the foreign owner; hash_rw format:
--         one of Redisson's, if it is among the holders. type: that of K; 'none' means that K is
--         free and could not be given away in this call, so poll soon (SERVE QUEUE, or ACQUIRE);
--         with a pttl >= 0 it is left to others for that long. flags: see grant.lua; + 8:
--         the holder can be recalled, and its client got the message. reader: the
--         token of the only one that shares K; for people. A type that no lock has (not string,
--         hash or none): the caller was not queued, and nothing but its id was written; an entry of
--         an earlier call stays until CANCEL.
-- Statuses: RL_OK; RL_BUSY or waiting; RL_E_WRONG_TYPE.
local K, Q, F, R, W = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local token, lease, me, ticket, prefix = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local mode, fence = 'x', nil
--@only hash
local owner = ARGV[6]
--@end
--@only permits
local permits, limit = string.match(ARGV[6], '^(%d+)/(%d+)$')
--@end
--@only string
if ARGV[6] then
  local E, id = KEYS[6], ARGV[6]
  --@include fragments/candidate.lua
end
--@end
--@include fragments/time.lua
-- The usual case first: one command where reading K and looking for a queue would be two.
if redis.call('EXISTS', K, Q, W) == 0 then
  --@only string hash hash_rw
  local holder, readers = false, 0
  --@include fragments/take.lua
  --@end
  --@only permits
  --@include fragments/permits/take_alone.lua
  --@end
  --@only string
  if string.byte(token, @CID_SIZE@ + 1) > @LAST_PLAIN@ then
    --@include fragments/mint_block.lua
  end
  --@end
  --@include fragments/granted.lua
end
--@include fragments/@FORMAT@/holder.lua
--@include fragments/@FORMAT@/readers.lua
--@include fragments/@FORMAT@/mine.lua
if is_mine then
  --@include fragments/keep.lua
  --@include fragments/granted.lua
end
--@only hash
if readers > 0 and holder == owner then
  if me ~= '' then
    redis.call('ZREM', Q, me)
  end
  --@include fragments/take.lua
  --@include fragments/granted.lua
end
--@end
local window = false
--@only string hash
if not holder then
  --@include fragments/window.lua
end
--@end
--@only hash_rw
if is_open then
  --@include fragments/window.lua
end
--@end
--@only string hash hash_rw
if not holder and not window and redis.call('EXISTS', Q) == 0 then
  --@include fragments/take.lua
  --@end
  --@only string
  --@include fragments/may_retain.lua
  if may_retain then
    --@include fragments/mint_block.lua
  end
  --@end
  --@only string hash hash_rw
  --@include fragments/granted.lua
end
--@end
--@only permits
--@include fragments/permits/cap.lua
if cap and not is_cap_timed then
  redis.call('PEXPIRE', W, '@CAP_TTL_MS@')
end
if is_open and used + permits <= math.min(limit, cap or limit) and
    redis.call('EXISTS', Q) == 0 then
  --@include fragments/take.lua
  --@include fragments/granted.lua
end
--@end
--@include fragments/wrong_type.lua
if wrong_type then
  return {0, redis.call('PTTL', K), now, '', -1, string.sub(redis.sha1hex(K), 1, 8), '',
    wrong_type, 0}
end
--@include fragments/line_up.lua
local served = 0
--@only permits
-- A waiter that polls finds out if the head is alive.
local is_head_told = not is_back
--@end
if has_new_head then
  --@include fragments/grant.lua
  served = flags
  if own then
    local number = own
    --@include fragments/granted.lua
  end
  -- Only a try gets here: all in the queue were dead, or are passed over.
  --@only string hash hash_rw
  if not holder and flags == 0 and not window then
    --@include fragments/take.lua
    --@include fragments/granted.lua
  end
  --@end
  --@only permits
  if (not holder or readers > 0) and used + permits <= math.min(limit, cap or limit) and
      flags == 0 and redis.call('ZCARD', Q) == place then
    --@include fragments/take.lua
    --@include fragments/granted.lua
  end
  --@end
end
--@only permits
-- A try is repeated at once.
served = has_more and 1 or served
--@end
--@include fragments/refusal.lua
