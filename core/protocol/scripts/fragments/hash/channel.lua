-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Where Redisson's waiters are notified that K is free, named by its rules: all but those of its
-- fair lock on one channel, and of those the first in their queue on its own. The queue is no key
-- of ours: a user without the right to read it does without.
--
-- On a cluster its recent versions subscribe to sharded channels; the last key of a call is then
-- the one that never exists.
--
-- In:  K.
-- Out: channel, fair_channel; on_cluster, if they may be sharded.
local tag = string.find(K, '{', 1, true) and K or '{' .. K .. '}'
local channel = 'redisson_lock__channel:' .. tag
local first = redis.pcall('LINDEX', 'redisson_lock_queue:' .. tag, 0)
local fair_channel = channel .. ':' .. (type(first) == 'string' and first or '')
--@only sharded
local on_cluster = string.find(KEYS[#KEYS], ':rl1[:.]n$')
--@end
