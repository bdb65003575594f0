-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- Refuses a value of F that no script of ours writes: text, a sign, an exponent, or a number with
-- no room for the next step below 2^53. A fence made from it could be lower than one already given,
-- so nothing is granted until an operator has deleted F.
--
-- In:  F; last, the value of F, false, or the error of reading it; spoilt declared.
-- Out: last, a number or nil; spoilt, the error to return.
if type(last) == 'table' then
  spoilt, last = last, nil
elseif last and (#last > 16 or not string.find(last, '^%d+$') or
    tonumber(last) + @FENCE_STEP@ > @FENCE_MAX@) then
  local key = string.gsub(string.sub(F, 1, 200), '%c', '?')
  local value = string.gsub(string.sub(last, 1, 32), '[^%w%p ]', '?')
  spoilt = redis.error_reply('ERR the fence key ' .. key .. ' must be a whole number of 0 to ' ..
    '@FENCE_MAX@ less @FENCE_STEP@ (got ' .. value .. '); nothing is granted until it is deleted')
  last = nil
end
last = tonumber(last or nil)
