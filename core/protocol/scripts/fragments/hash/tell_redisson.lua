-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Tells Redisson's waiters that K is free. On a cluster with sharded channels, where the last key
-- is the one that never exists, recent versions of Redisson subscribe to those.
--
-- In:  channel, fair_channel, holder.
if not holder then
  redis.pcall('PUBLISH', channel, '0')
  redis.pcall('PUBLISH', fair_channel, '0')
  --@only sharded
  if string.sub(KEYS[#KEYS], -2) == ':n' then
    redis.pcall('SPUBLISH', channel, '0')
    redis.pcall('SPUBLISH', fair_channel, '0')
  end
  --@end
end
