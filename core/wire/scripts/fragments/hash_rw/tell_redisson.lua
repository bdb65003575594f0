-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Tells Redisson's waiters that K can be had: `1` is for readers as well, who come in together.
--
-- In:  channel, plain_channel, fair_channel, holder, readers, was_writer.
if not holder or (was_writer and readers > 0) then
  redis.pcall('PUBLISH', channel, was_writer and '1' or '0')
  redis.pcall('PUBLISH', plain_channel, '0')
  redis.pcall('PUBLISH', fair_channel, '0')
end
