-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- How many clients wait for plain locks by Redisson's rules, and how many for any lock. An error
-- here, as without the right to look, counts as none: it would leave half a release.
--
-- In:  channel, plain_channel, fair_channel, on_cluster.
-- Out: plain_waiters, their_waiters.
local found = redis.pcall('PUBSUB', 'NUMSUB', channel, plain_channel, fair_channel)
local plain_waiters = (found[4] or 0) + (found[6] or 0)
local their_waiters = plain_waiters + (found[2] or 0)
--@only sharded
if on_cluster then
  found = redis.pcall('PUBSUB', 'SHARDNUMSUB', channel, plain_channel, fair_channel)
  local sharded = (found[4] or 0) + (found[6] or 0)
  plain_waiters = plain_waiters + sharded
  their_waiters = their_waiters + sharded + (found[2] or 0)
end
--@end
