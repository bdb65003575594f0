-- SPDX-License-Identifier: Apache-2.0
-- Copyright The redlatch authors
--
-- The answer to who got K: see acquire.lua.
--
-- In:  now, number, readers.
-- Out: none; it returns. It stands last in its block.
--@only string hash_rw permits
return {1, number, now}
--@end
--@only hash
return {1, number, now, readers}
--@end
