-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- ONCE FORGET: no run of this name is remembered: the next start runs. A run that is under way
-- continues; its success counts only for callers that wait for it. Resending this is harmless.
--
-- KEYS: O.
-- ARGV: none.
-- Returns {1, 0}.
-- Statuses: RL_OK.
-- HLEN refuses a key that is another program's data.
if redis.call('HLEN', KEYS[1]) > 0 then
  redis.call('DEL', KEYS[1])
end
return {1, 0}
