-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Where the waiters of Redisson's read-write lock are notified that K can be had, and those of its
-- plain locks, which the mutex of this format excludes as well; named by its rules.
--
-- In:  K.
-- Out: channel; plain_channel and fair_channel, of plain locks; on_cluster.
--@include fragments/hash/channel.lua
local plain_channel = channel
channel = 'redisson_rwlock:' .. tag
