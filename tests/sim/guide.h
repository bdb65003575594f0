// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Guide: the connections of a client to its sentinels. The product's PrimaryFollower says what
// follows from what comes there.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "context.h"
#include "driver/log.h"
#include "driver/primary_follower.h"
#include "network.h"
#include "redials.h"

namespace redlatch::sim {

class Client;

class Guide {
 public:
  // `settings` and `log` outlive it.
  Guide(Client &client, Context &context, const Settings &settings, driver::Log &log);

  // For attempts to connect. When one has begun, tend_watch() follows.
  driver::PrimaryFollower &follower() { return follower_; }
  void tend_watch();

  void hang_up(Network::Ending ending);  // the process has ended
  void part_from(size_t sentinel, Nanos until);
  bool is_parted(size_t sentinel) const;
  void heal() { parted_.clear(); }

  // Since when it could hear this sentinel without a disturbance: kNever if it cannot.
  Nanos heard_since(size_t sentinel) const;
  // @return its connection to this sentinel, which is about to be disturbed; 0: none.
  uint64_t disturb(size_t sentinel);
  // Check that no pause between dials is too long.
  void check_redials() const;
  int64_t epoch() { return follower_.watch().known().epoch; }

 private:
  // One end of a connection to a sentinel.
  struct End final : ClientEnd {
    explicit End(Guide &guide_) : guide(guide_) {}
    void received(uint64_t id, Messages messages) override;
    void closed(uint64_t id) override;

    Guide &guide;
    uint64_t link = 0;
    uint64_t number = 0;  // counts dials
    size_t sentinel = 0;
    size_t slot = 0;          // of the watch
    int64_t said_epoch = -1;  // by the last answer of the sentinel; -1: none yet
    Nanos undisturbed = 0;    // since then
    Redials redials{Redials::kOfSentinel};
  };

  Nanos now() const;
  void dial(End &end, size_t sentinel);
  void close(End &end);

  template <class Event>
  void watch(End &end, const Event &event);
  void post_dialled(End &end);
  void post_takes(End &end, const Message &message);
  void post_fails(End &end);
  void watch_due();
  static void note_epoch(End &end, const Message &message);
  void note_told(const End &end, const Message &message);

  Client &client_;
  Context &context_;
  const Settings &settings_;
  driver::PrimaryFollower follower_;
  std::vector<std::unique_ptr<End>> posts_;
  std::map<size_t, Nanos> parted_;
  uint64_t watch_number_ = 0;
};

}  // namespace redlatch::sim
