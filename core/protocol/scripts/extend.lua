-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- EXTEND: extend the lease of the exclusive holder to at least ttl_ms from now. It never shortens a
-- lease, because it may be a late copy, and never brings back a lock that was gone: a gap means
-- lost for good.
--
-- The lease does not depend on the description: one that is refused, because another program has a
-- key of another type at I, or for want of a right, is left out.
--
-- KEYS: K, or K and I (few keys, so that it works while a slot is being moved).
-- ARGV: token, ttl_ms, and for a new description of the holder: field, value, ...
-- Returns {1, now}: extended.
--      or {-1, now}: another one holds K; nothing was written.
--      or {0, now}: none holds K; nothing was written.
-- Statuses: RL_OK; RL_E_LOST, by GONE (0) or TAKEN_OVER (-1).
local K, I = KEYS[1], KEYS[2]
local token, lease = ARGV[1], tonumber(ARGV[2])
--@include fragments/string/holder.lua
--@include fragments/time.lua
if holder ~= token then
  return {type(holder) == 'string' and -1 or 0, now}
end
local pttl = math.max(redis.call('PTTL', K), lease)
-- A write, also if K lasts longer already: a WAIT behind it counts the replicas that have it.
redis.call('PEXPIRE', K, pttl)
if I then
  if #ARGV > 2 then
    -- HGET first: no key of another type is touched. PEXPIRE before HSET, and without an effect: a
    -- user that may not set an expiry must not leave I behind. DEL leaves nothing of an earlier
    -- holder, and a server without memory allows HSET behind it.
    local mark = redis.pcall('HGET', I, token)
    if type(mark) ~= 'table' and type(redis.pcall('PEXPIRE', I, pttl)) == 'number' and
        type(redis.pcall('DEL', I)) == 'number' and
        type(redis.pcall('HSET', I, 'token', token, unpack(ARGV, 3))) == 'number' then
      if mark then
        redis.call('HSET', I, token, mark)
      end
      redis.call('PEXPIRE', I, pttl)
    end
  elseif redis.pcall('HGET', I, 'token') == token then
    redis.call('PEXPIRE', I, pttl)
  end
end
return {1, now}
