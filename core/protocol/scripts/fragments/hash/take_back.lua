-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Undoes give.lua: no client received the grant.
--
-- In:  R, holder, readers, token, owner.
-- Out: holder, readers.
readers = readers - redis.call('ZREM', R, token .. owner)
holder = readers > 0 and holder
