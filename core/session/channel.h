// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Channel: where the messages for a client arrive, and how far it may rely on them. Its name is the
// client's id behind the prefix of the namespace; the token of a waiter begins with that id.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/random.h"
#include "base/server_facts.h"

namespace redlatch::session {

class Channel {
 public:
  Channel(std::string_view name_space, std::span<const uint8_t, 16> random);

  const std::string &name() const { return name_; }
  const std::string &cid() const { return cid_; }
  const std::string &prefix() const { return prefix_; }

  void on_connected(const ServerFacts &facts, bool is_of_cluster);
  // True if PUBLISH counts each subscriber that its message reaches.
  bool is_counted() const { return is_counted_; }
  // Messages for this token arrive. An upgrade that began at another node of a cluster has a token
  // with the channel of that one.
  bool hears(std::string_view token) const { return is_trusted_ && token.starts_with(cid_); }

  // The server still counts an earlier connection of this client as a receiver, and would, while
  // that one is not noticed as dead: without another channel this client would poll for as long as
  // it is connected now. @return true: leave this connection.
  [[nodiscard]] bool leave_if_taken(const ServerFacts &facts);
  // It is changed before the next connection.
  bool is_taken() const { return is_taken_; }
  // @return the id of another channel. Throws std::bad_alloc.
  std::string draw(Entropy &entropy);
  // From the next connection on. `cid` has the length of the old one, and `name` that behind the
  // prefix.
  void change(std::string cid, std::string name) noexcept;
  // True once after a change.
  [[nodiscard]] bool take_change();

 private:
  std::array<uint8_t, 16> random_;
  const std::string prefix_;
  std::string cid_;
  std::string name_;
  bool is_trusted_ = true;
  bool is_counted_ = true;
  bool is_taken_ = false;    // by another connection: this one is left for that
  bool is_changed_ = false;  // since the last connection
  int taken_count_ = 0;      // of channels, since messages were trusted
};

}  // namespace redlatch::session
