-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- PROBE: publish `p` to two channels, to find out if this server counts receivers as the hand-off
-- needs it. Behind some proxies, or without the right to publish, it does not, and the client
-- polls.
--
-- KEYS: the name of the first channel, or none. It is not read: some servers run no script without
--       a key. None, if the user has no right to that key, or it is at another node.
-- ARGV: a channel that the caller is subscribed to, a channel without users.
-- Returns {receivers of the first, receivers of the second}: -1 for an error. A usable server
--         answers {1, 0}.
-- Statuses: none; it decides how a client waits.
local own = redis.pcall('@PUBLISH@', ARGV[1], 'p')
local unused = redis.pcall('@PUBLISH@', ARGV[2], 'p')
return {type(own) == 'number' and own or -1, type(unused) == 'number' and unused or -1}
