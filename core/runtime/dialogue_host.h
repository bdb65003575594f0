// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// DialogueHost: has the connections of a dialogue, and does what it says, in a thread that may
// block. `wake_fd` ends it when it turns readable.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/password.h"
#include "driver/dialogue.h"
#include "embedded/server_attachment.h"
#include "net/connection.h"
#include "resp/reply_reader.h"

namespace redlatch::runtime {

// The connections that a dialogue uses when it is over.
struct Connections {
  std::unique_ptr<net::Connection> commands;
  // With RESP2 messages need a connection of their own; with RESP3 they come with the replies.
  std::unique_ptr<net::Connection> messages;
  std::vector<resp::ReplyPtr> pushes;  // that came on `commands` meanwhile
};

class DialogueHost {
 public:
  using Dialogue = driver::Dialogue;

  // `attachment`: of an embedded server, else NULL.
  DialogueHost(Dialogue &dialogue, embedded::ServerAttachment *attachment, int wake_fd)
      : dialogue_(dialogue), attachment_(attachment), wake_fd_(wake_fd) {}

  // Until the dialogue is over. Throws std::bad_alloc.
  void hold();
  // After hold(): the connections that the dialogue uses, and the pushes.
  Connections take() {
    return {std::move(wires_[Dialogue::kCommands]), std::move(wires_[Dialogue::kMessages]),
            std::move(pushes_)};
  }

 private:
  void dial();
  void exchange();
  void keep_pushes(Dialogue::Wire from);
  void close_unused();
  Dialogue::Send sender();

  Dialogue &dialogue_;
  embedded::ServerAttachment *const attachment_;
  const int wake_fd_;
  std::array<std::unique_ptr<net::Connection>, Dialogue::kWireCount> wires_;
  std::string bytes_;             // to be sent
  const WipeAtEnd wipe_{bytes_};  // they may hold the password
  std::vector<resp::ReplyPtr> replies_, pushes_;
};

}  // namespace redlatch::runtime
