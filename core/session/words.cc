// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "session/words.h"

#include "base/message.h"

namespace redlatch::session::words {

std::string not_connected_yet(const Settings &server) noexcept {
  return message_of({"not connected to ", &server, " yet"});
}

std::string lost_connection(const Settings &server) noexcept {
  return message_of({"lost the connection to ", &server});
}

std::string messages_dead(const Settings &server, std::string_view why) noexcept {
  return message_of(
      {"the connection for messages to ", &server, " is dead: ", why, "; connecting anew"});
}

}  // namespace redlatch::session::words
