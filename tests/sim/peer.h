// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Peer: a client of another lock library on the same key. Either it polls with SET NX PX and
// releases if the value is its own, like redis-py's Lock and redsync; or, on a hash, it does what
// Redisson's RLock does: it counts in the hash, and notifies waiters on a channel.
#pragma once

#include <string>

#include "context.h"
#include "network.h"
#include "random.h"

namespace redlatch::sim {

class Peer : public ClientEnd {
 public:
  Peer(Context &context, int number);

  void begin();
  void received(uint64_t link, Messages messages) override;
  void closed(uint64_t link) override;

 private:
  void later(Nanos delay, void (Peer::*action)());
  void ask();
  void give_up();
  void release();
  void think();
  void take(const Message &message);
  void send(Argv argv);
  bool is_hash() const { return context_.plan.format == protocol::Format::kHash; }
  void hang_up();

  Context &context_;
  const int number_;
  const Clock clock_;
  Random random_;

  uint64_t link_ = 0;
  std::string name_, token_;
  std::string channel_;  // of a hash
  std::string link_channel_;
  Nanos lease_ = 0;
  Nanos sent_at_ = 0;  // by its own clock
  bool is_asking_ = false;
  bool is_holding_ = false;
  int skipped_count_ = 0;  // replies to releases, which it ignores
  int attempt_count_ = 0;
  uint64_t turn_ = 0;
};

}  // namespace redlatch::sim
