// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Guide: what core/runtime does with the sentinels of a client: it runs the product's PrimaryWatch.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "context.h"
#include "driver/primary_attempt.h"
#include "network.h"
#include "sentinel/discovery.h"
#include "sentinel/primary_watch.h"

namespace redlatch::sim {

class Client;

class Guide {
 public:
  // `settings` outlive it.
  Guide(Client &client, Context &context, const Settings &settings);

  // What an attempt to connect begins with.
  sentinel::Knowledge begin_attempt();
  // @return false if another server has become the primary since.
  [[nodiscard]] bool note_attempt(const driver::PrimaryAttempt &attempt);

  // Whether the client connects without a pause, because the primary has moved.
  bool is_hurried() const { return is_hurried_; }

  void hang_up(Network::Ending ending);  // the process has ended
  void part_from(size_t sentinel, Nanos until);
  bool is_parted(size_t sentinel) const;
  void heal() { parted_.clear(); }

  // Since when it could hear this sentinel without a disturbance: kNever if it cannot.
  Nanos heard_since(size_t sentinel) const;
  // @return its connection to this sentinel, which is about to be disturbed; 0: none.
  uint64_t disturb(size_t sentinel);
  int64_t epoch() const { return primary_watch_.known().epoch; }

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
  };

  Nanos now() const;
  void dial(End &end, size_t sentinel);
  void close(End &end);

  template <class Event>
  void watch(End &end, const Event &event);
  void tend_watch();
  void post_dialled(End &end);
  void post_takes(End &end, const Message &message);
  void post_fails(End &end);
  void watch_due();
  void on_news();
  static void note_epoch(End &end, const Message &message);
  void note_told(const End &end, const Message &message);

  Client &client_;
  Context &context_;
  const Settings &settings_;
  sentinel::PrimaryWatch primary_watch_;
  bool is_hurried_ = false;  // the primary has moved: connect without a pause
  std::vector<std::unique_ptr<End>> posts_;
  std::map<size_t, Nanos> parted_;
  uint64_t watch_number_ = 0;
};

}  // namespace redlatch::sim
