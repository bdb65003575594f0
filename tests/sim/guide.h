// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Guide: what core/runtime does with the sentinels of a client: it runs the product's Discovery
// when the client connects, and the product's PrimaryWatch while it is connected.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "context.h"
#include "network.h"
#include "sentinel/discovery.h"
#include "sentinel/primary_watch.h"

namespace redlatch::sim {

class Client;

class Guide {
 public:
  // `settings` outlive it.
  Guide(Client &client, Context &context, const Settings &settings);

  // Find the primary: Client::on_named(), each time one is named, or Client::on_not_found().
  void seek();
  bool is_seeking() const { return discovery_.has_value(); }
  // The server that was named is used. @return false if another one has become the primary since.
  [[nodiscard]] bool confirm();
  // .. is not used.
  void refute(const Outcome &why);
  // Until when the server that was named has to be reached; kNever if none was named.
  Nanos limit() const;

  // Whether the client connects without a pause, because the primary has moved.
  bool is_hurried() const { return is_hurried_; }

  // Its connections; 0: none.
  uint64_t link() const { return scout_.link; }
  void hang_up(Network::Ending ending);  // the process has ended
  void part_from(size_t sentinel, Nanos until);
  void heal() { parted_.clear(); }

  // Since when it could hear this sentinel without a disturbance: kNever if it cannot.
  Nanos heard_since(size_t sentinel) const;
  // @return its connection to this sentinel, which is about to be disturbed; 0: none.
  uint64_t disturb(size_t sentinel);
  int64_t epoch() const { return primary_watch_.known().epoch; }

 private:
  // One end of a connection to a sentinel.
  struct End final : ClientEnd {
    using Take = void (Guide::*)(End &, const Message &);
    using Event = void (Guide::*)(End &);
    End(Guide &guide_, Take take_, Event fail_) : guide(guide_), take(take_), fail(fail_) {}
    void received(uint64_t id, Messages messages) override;
    void closed(uint64_t id) override;
    void failed();

    Guide &guide;
    const Take take;
    const Event fail;
    uint64_t link = 0;
    uint64_t number = 0;  // counts dials
    size_t sentinel = 0;
    size_t slot = 0;          // of the watch
    int64_t said_epoch = -1;  // by the last answer of the sentinel; -1: none yet
    Nanos undisturbed = 0;    // since then
  };

  Nanos now() const;
  void dial(End &end, size_t sentinel, End::Event dialled);
  void close(End &end);
  bool is_parted(size_t sentinel) const;
  std::vector<End *> ends();

  template <class Event>
  void step(const Event &event);
  void continue_seeking();
  void scout_dialled(End &end);
  void scout_takes(End &end, const Message &message);
  void scout_fails(End &end);
  void watch_limit();

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
  std::optional<sentinel::Discovery> discovery_;
  sentinel::PrimaryWatch primary_watch_;
  bool is_hurried_ = false;  // the primary has moved: connect without a pause
  End scout_;
  std::vector<std::unique_ptr<End>> posts_;
  std::map<size_t, Nanos> parted_;
  uint64_t limit_number_ = 0;
  uint64_t watch_number_ = 0;
};

}  // namespace redlatch::sim
