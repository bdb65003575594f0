-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Notifies a waiter whose channel has its slot at another node to ask at once: its client hears the
-- plain channel of the same name. It is not known whether the message arrives.
--
-- In:  prefix, member.
redis.pcall('PUBLISH', prefix .. string.sub(member, 1, 22),
  'n' .. string.sub(member, 23, 32) .. '00000')
