-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Tells Redisson's waiters that K can be had. `1` wakes all who wait at that moment, readers as
-- well, and is lost on one that is about to; `0` wakes one, and is kept for it.
--
-- In:  channel, plain_channel, fair_channel, on_cluster, holder, readers, was_writer.
if not holder or (was_writer and readers > 0) then
  if was_writer then
    redis.pcall('PUBLISH', channel, '1')
  end
  redis.pcall('PUBLISH', channel, '0')
  redis.pcall('PUBLISH', plain_channel, '0')
  redis.pcall('PUBLISH', fair_channel, '0')
  --@only sharded
  if on_cluster then
    if was_writer then
      redis.pcall('SPUBLISH', channel, '1')
    end
    redis.pcall('SPUBLISH', channel, '0')
    redis.pcall('SPUBLISH', plain_channel, '0')
    redis.pcall('SPUBLISH', fair_channel, '0')
  end
  --@end
end
