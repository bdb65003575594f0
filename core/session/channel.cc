// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "session/channel.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "protocol/command.h"
#include "protocol/keys.h"
#include "protocol/token.h"

namespace redlatch::session {

Channel::Channel(std::string_view name_space, std::span<const uint8_t, 16> random)
    : prefix_(protocol::channel_prefix(name_space)),
      cid_(protocol::make_cid(random)),
      name_(prefix_ + cid_) {
  std::copy(random.begin(), random.end(), random_.begin());
}

// The probe has shown that a proxy does not count. In a cluster a plain message reaches subscribers
// at all nodes, but PUBLISH counts only those at its own.
void Channel::on_connected(const ServerFacts &facts, bool is_of_cluster) {
  is_trusted_ = facts.is_push_trusted;
  is_counted_ = is_trusted_ && (!is_of_cluster || facts.is_sharded);
}

// A count that is wrong for new channels, too, is that of a broken proxy.
bool Channel::leave_if_taken(const ServerFacts &facts) {
  constexpr int kMostChannels = 4;
  if (facts.is_push_trusted) taken_count_ = 0;
  is_taken_ = facts.is_channel_taken && taken_count_ < kMostChannels;
  if (!is_taken_) return false;
  taken_count_++;
  is_trusted_ = is_counted_ = false;
  return true;
}

std::string Channel::draw(Entropy &entropy) {
  entropy.mix_into(random_);
  return protocol::make_cid(random_);
}

void Channel::change(std::string cid, std::string name) noexcept {
  assert(cid.size() == cid_.size() && name.size() == prefix_.size() + cid.size());
  cid_ = std::move(cid);
  name_ = std::move(name);
  is_taken_ = false;
  is_changed_ = true;
}

bool Channel::take_change() { return std::exchange(is_changed_, false); }

}  // namespace redlatch::session
