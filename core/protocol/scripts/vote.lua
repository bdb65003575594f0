-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- VOTE: ACQUIRE for a node of a quorum without fences. Five nodes may share one machine, so that
-- what a script costs counts five times: a free lock needs neither the clock nor a fence.
--
-- KEYS: as ACQUIRE.
-- ARGV: as ACQUIRE.
-- Returns 1: K, Q and W did not exist, and K is held by the token for ttl_ms, without a fence.
--      or as ACQUIRE.
-- Statuses: RL_OK; RL_BUSY or waiting; RL_E_WRONG_TYPE.
if redis.call('EXISTS', KEYS[1], KEYS[2], KEYS[5]) == 0 then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
  return 1
end
--@include acquire.lua
