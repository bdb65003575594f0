// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "runtime/connections.h"

#include <cstring>
#include <vector>

#include "protocol/handshake.h"

namespace redlatch::runtime {

namespace {

using protocol::Handshake;

// A connection on which a handshake takes place.
class Talk {
 public:
  Talk(const Settings &settings, int wake_fd) : settings_(settings), wake_fd_(wake_fd) {}

  Outcome connect(embedded::ServerAttachment *attachment) {
    connection_ = std::make_unique<net::Connection>();
    const Nanos limit = boot_now() + settings_.connect_timeout;
    if (attachment != nullptr) return attachment->dial(*connection_, limit, wake_fd_);
    return connection_->dial(settings_, limit, wake_fd_);
  }

  // `begin` sends the first commands.
  template <class Begin>
  Outcome exchange(Handshake &handshake, Begin begin) {
    const auto send = [this](auto argv) { net::append_command(bytes_, argv); };
    // A fresh limit for each call: the other connection may have been opened in between.
    const Nanos all_until = boot_now() + settings_.timeout;
    begin(send);
    std::vector<net::ReplyPtr> replies;
    while (handshake.awaited_count() > 0) {
      const bool is_identity = handshake.stage() == Handshake::Stage::kIdentity;
      const Nanos limit = is_identity ? boot_now() + settings_.timeout : all_until;
      const auto outcome =
          connection_->exchange(bytes_, handshake.awaited_count(), limit, wake_fd_, replies);
      explicit_bzero(bytes_.data(), bytes_.size());  // it may hold the password
      bytes_.clear();
      if (!outcome.ok()) return outcome;
      const Nanos now = boot_now();
      for (const net::ReplyPtr &reply : replies) handshake.on_reply(*reply, send, now);
    }
    return handshake.outcome();
  }

  std::unique_ptr<net::Connection> take() { return std::move(connection_); }

 private:
  const Settings &settings_;
  const int wake_fd_;
  std::string bytes_;
  std::unique_ptr<net::Connection> connection_;
};

}  // namespace

Outcome open_connections(const Settings &settings, const std::string &channel,
                         embedded::ServerAttachment *attachment, bool asks_identity, int wake_fd,
                         Connections &opened) {
  Talk commands(settings, wake_fd);
  if (auto outcome = commands.connect(attachment); !outcome.ok()) return outcome;
  Handshake handshake(settings, channel, asks_identity);
  auto outcome = commands.exchange(handshake, [&](const auto &send) { handshake.start(send); });
  if (outcome.ok() && handshake.stage() == Handshake::Stage::kMessages) {
    Talk messages(settings, wake_fd);
    if (outcome = messages.connect(attachment); !outcome.ok()) return outcome;
    Handshake second = Handshake::for_messages(handshake);
    outcome = messages.exchange(second, [&](const auto &send) { second.start(send); });
    if (!outcome.ok()) return outcome;
    if (second.facts().is_push_trusted) opened.messages = messages.take();
    outcome = commands.exchange(
        handshake, [&](const auto &send) { handshake.on_messages(second, send, boot_now()); });
  }
  opened.facts = handshake.facts();
  opened.commands = commands.take();
  return outcome;
}

}  // namespace redlatch::runtime
