-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Gives K to the token. The shared key of readers is written by settle.lua.
--
-- The first reader clears R: a token in it has lost K, and a gap is for good.
--
-- An upgrade keeps what is left of its lease as a reader: a provisional lease alone could cut it.
--
-- In:  K, R, now, holder, readers, mode, token, ms (its lease, or a provisional one).
-- Out: holder, readers. expiry: of the reader that was upgraded.
local expiry
if mode == 's' then
  if not holder then
    redis.call('DEL', R)
  end
  readers = readers + redis.call('ZADD', R, 'GT', now + ms, token)
  if not holder then
    --@include fragments/readers_expiry.lua
  end
  holder = '@SHARED@'
else
  if mode == 'u' then
    expiry = redis.call('ZSCORE', R, token)
    ms = math.max(ms, expiry - now)
    redis.call('DEL', R)
    readers = 0
  end
  redis.call('SET', K, token, 'PX', ms)
  holder = token
end
