// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Sentinels: the connections to the sentinels that know the address of a server.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/settings.h"
#include "driver/log.h"
#include "driver/primary_follower.h"
#include "wire.h"

namespace redlatch::wasm {

class Sentinels final : public WireOwner {
 public:
  Sentinels(const Settings &settings, driver::Log &log)
      : follower_(settings, log), places_(follower_.watch().size()) {}

  driver::PrimaryFollower &follower() { return follower_; }
  const driver::PrimaryFollower &follower() const { return follower_; }
  // True once: the connection to the primary, and an attempt to make it, must end now.
  bool take_news() { return std::exchange(is_news_, false); }
  // `is_wanted`: the server is connected, or an attempt is made.
  void tend(bool is_wanted, Nanos now);
  // There was no memory in an event, which may have been the news of another primary.
  void give_up(Nanos now) noexcept;

  void on_time(Nanos now);
  Nanos next_due() const;

 private:
  // A connection, by its number in the watch.
  struct Place {
    std::unique_ptr<Wire> wire;
    std::unique_ptr<Settings> settings;
    bool is_used = false;
    Nanos dial_limit = kNever;  // while it is dialled
  };

  void on_dialled(const Wire &wire, Nanos now) override;
  void on_replies(const Wire &wire, Replies replies, Nanos now) override;
  void on_closed(const Wire &wire, std::string_view why, Nanos now) override;
  size_t find(const Wire &wire) const;
  void lose(size_t number, const Outcome &why, Nanos now) noexcept;
  sentinel::Send sender(size_t number) {
    return [this, number](auto argv) { places_[number].wire->append(argv); };
  }

  driver::PrimaryFollower follower_;
  std::vector<Place> places_;
  bool is_news_ = false;
  bool is_wanted_ = false;
};

}  // namespace redlatch::wasm
