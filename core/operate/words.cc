// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "operate/words.h"

#include "base/message.h"

namespace redlatch::operate::words {

std::string not_held(Text lock) noexcept { return message_of({LockName{lock}, " is not held"}); }

std::string not_held_by_token(Text lock) noexcept {
  return message_of({LockName{lock}, " is not held by that token"});
}

std::string not_a_lock(Text lock) noexcept {
  return message_of({LockName{lock}, " is not held: its key is a hash that no lock format has"});
}

std::string list_too_long(int64_t most) noexcept {
  return message_of({"the list is of over ", most, " locks: its pattern must name fewer"});
}

}  // namespace redlatch::operate::words
