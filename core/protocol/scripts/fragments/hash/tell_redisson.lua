-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Tells Redisson's waiters that K is free.
--
-- In:  channel, fair_channel, on_cluster, holder.
if not holder then
  redis.pcall('PUBLISH', channel, '0')
  redis.pcall('PUBLISH', fair_channel, '0')
  --@only sharded
  if on_cluster then
    redis.pcall('SPUBLISH', channel, '0')
    redis.pcall('SPUBLISH', fair_channel, '0')
  end
  --@end
end
