-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- How many clients wait by Redisson's rules. An error here, as without the right to look, counts as
-- none: it would leave half a release.
--
-- In:  channel, fair_channel, on_cluster.
-- Out: their_waiters.
local found = redis.pcall('PUBSUB', 'NUMSUB', channel, fair_channel)
local their_waiters = (found[2] or 0) + (found[4] or 0)
--@only sharded
if on_cluster then
  found = redis.pcall('PUBSUB', 'SHARDNUMSUB', channel, fair_channel)
  their_waiters = their_waiters + (found[2] or 0) + (found[4] or 0)
end
--@end
