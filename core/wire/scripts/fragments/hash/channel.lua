-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Where Redisson's waiters are told that K is free, named by its rules.
--
-- In:  K.
-- Out: channel.
local channel = 'redisson_lock__channel:' .. (string.find(K, '{', 1, true) and K or '{' .. K .. '}')
