-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Writes the mark of a lease, which lasts as long as K. PEXPIRE is the first write: one that a
-- server without memory allows, and a user that may not set an expiry leaves nothing behind. HLEN
-- refuses a key of another type before that.
--
-- Fields of earlier holders are removed, so that I does not grow while leases change hands. The
-- mark is written after every command that may be refused: a refused DETACH leaves the lease held,
-- so no mark may be there.
--
-- In:  K, I, R, readers, token, mark.
-- Out: none. I is written.
local left = math.max(redis.call('PTTL', K), 1)
local count = redis.call('HLEN', I)
redis.call('PEXPIRE', I, left)
if count >= @MARKS@ then
  for _, field in ipairs(redis.call('HKEYS', I)) do
    if not redis.call('ZSCORE', R, field) then
      redis.call('HDEL', I, field)
    end
  end
end
if readers == 0 then
  if redis.call('HGET', I, 'token') ~= token then
    redis.call('DEL', I)
  end
  redis.call('HSET', I, 'token', token, token, mark)
else
  redis.call('HSET', I, token, mark)
end
redis.call('PEXPIRE', I, left)
