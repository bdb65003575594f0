// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Guide: what core/runtime does with the sentinels of a client: it runs the product's Discovery
// when the client connects, and the product's SentinelWatch while it is connected.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "context.h"
#include "network.h"
#include "sentinel/discovery.h"
#include "sentinel/sentinel_watch.h"

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
  uint64_t watch_link() const { return post_.link; }
  void hang_up(Network::Ending ending);  // the process has ended
  void part_from(size_t sentinel, Nanos until);
  void heal() { parted_.clear(); }

 private:
  // One end of a connection to a sentinel.
  struct End final : ClientEnd {
    End(Guide &guide_, void (Guide::*take_)(const Message &), void (Guide::*fail_)())
        : guide(guide_), take(take_), fail(fail_) {}
    void received(uint64_t id, Messages messages) override;
    void closed(uint64_t id) override;
    void failed();

    Guide &guide;
    void (Guide::*const take)(const Message &);
    void (Guide::*const fail)();
    uint64_t link = 0;
    uint64_t number = 0;  // counts dials
    size_t sentinel = 0;
  };

  Nanos now() const;
  void dial(End &end, size_t sentinel, void (Guide::*dialled)());
  void close(End &end);
  bool is_parted(size_t sentinel) const;

  template <class Event>
  void step(const Event &event);
  void continue_seeking();
  void scout_dialled();
  void scout_takes(const Message &message);
  void scout_fails();
  void watch_limit();

  void begin_watch(size_t sentinel);
  void post_dialled();
  void post_takes(const Message &message);
  void post_fails();
  void watch_due();
  void check_watch();
  void on_news(const sentinel::Opinion &opinion);
  void note_told(const Message &message);

  Client &client_;
  Context &context_;
  const Settings &settings_;
  std::optional<sentinel::Discovery> discovery_;
  std::optional<sentinel::SentinelWatch> watch_;
  sentinel::Knowledge known_;
  sentinel::Opinion opinion_;     // who named the primary that was last connected to
  std::optional<HostPort> news_;  // since the discovery began: the new primary
  bool is_hurried_ = false;       // the primary has moved: connect without a pause
  Settings sentinel_settings_;    // of the one that is watched
  End scout_, post_;
  std::map<size_t, Nanos> parted_;
  uint64_t limit_number_ = 0;
  uint64_t watch_number_ = 0;
};

}  // namespace redlatch::sim
