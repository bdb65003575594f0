-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Where the waiters of Redisson's read-write lock are told that K can be had, and those of its
-- plain lock, which the mutex of this format excludes as well; named by its rules.
--
-- In:  K.
-- Out: channel, plain_channel.
local tag = string.find(K, '{', 1, true) and K or '{' .. K .. '}'
local channel, plain_channel = 'redisson_rwlock:' .. tag, 'redisson_lock__channel:' .. tag
