-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Writes the mark of a lease, which lasts as long as K. PEXPIRE comes first: it is a write that a
-- server without memory allows, and a user that may not set an expiry leaves nothing behind.
--
-- Fields of earlier holders are removed, so that I does not grow while leases change hands. The
-- mark is written after every command that may be refused: a refused DETACH leaves the lease held,
-- so no mark may be there.
--
-- In:  K, I, R, readers, token, mark.
-- Out: none. I is written.
local left = math.max(redis.call('PTTL', K), 1)
redis.call('PEXPIRE', I, left)
if redis.call('HLEN', I) >= @MARKS@ then
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
