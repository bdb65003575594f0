-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- UNVOTE: the usual cases of RELEASE: give up a K that the token has, if nothing waits for it and
-- no other library takes turns; and say that another token has it. Any other case is left to
-- RELEASE.
--
-- KEYS: K, Q, W.
-- ARGV: token.
-- Returns 1: freed; -1: another has K; or 0: not decided. Nothing but a freed K was written.
-- Statuses: RL_OK; -1 is RL_E_LOST, or done, as with RELEASE; 0 is followed by RELEASE.
local K = KEYS[1]
local holder = redis.pcall('GET', K)
if holder == ARGV[1] then
  if redis.call('EXISTS', KEYS[2], KEYS[3]) > 0 then
    return 0
  end
  redis.call('DEL', K)
  return 1
end
return type(holder) == 'string' and -1 or 0
