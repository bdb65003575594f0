-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Notifies the waiters of a flight that its value is there: `v`, rid. They leave the queue, and
-- each client reads the value. A waiter that polls, or that no message reaches, keeps its place: it
-- gets K in its turn, and reads then.
--
-- In:  Q, prefix.
-- Out: none; Q is written.
for _, member in ipairs(redis.call('ZRANGE', Q, 0, @MAX_ENTRIES@ - 1)) do
  if string.sub(member, 33, 33) == 'v' and string.sub(member, 34, 34) ~= '+' then
    local receivers = redis.pcall('@PUBLISH@', prefix .. string.sub(member, 1, 22),
      'v' .. string.sub(member, 23, 32))
    if type(receivers) == 'number' and receivers > 0 then
      redis.call('ZREM', Q, member)
    end
  end
end
