// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// PrimaryFollower: follows the primary that sentinels name. It decides when the connection to it is
// left and when it is made again without a pause, and logs that. Its host has the connections to
// the sentinels, by their number in watch(), and passes what comes there. No socket, no clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/reply.h"
#include "base/server_facts.h"
#include "base/settings.h"
#include "base/status.h"
#include "driver/log.h"
#include "sentinel/conversation.h"
#include "sentinel/discovery.h"
#include "sentinel/primary_watch.h"

namespace redlatch::driver {

class PrimaryFollower {
 public:
  // `settings` and `log` outlive it.
  PrimaryFollower(const Settings &settings, Log &log)
      : settings_(settings), log_(log), watch_(settings) {}

  sentinel::PrimaryWatch &watch() { return watch_; }
  // The settings of the connection to the primary.
  Settings primary() const { return settings_.of_primary(watch_.opinion().primary); }
  // Its address, and which sentinel has named it. Throws std::bad_alloc.
  std::string described() const;

  // ---- attempts to connect to the primary

  // True from news of another primary until take_hurry(): the next attempt begins without a pause.
  bool is_hurried() const { return is_hurried_; }
  // Returns is_hurried(), and resets it.
  bool take_hurry() { return std::exchange(is_hurried_, false); }
  // @return what the attempt begins with.
  const sentinel::Knowledge &begin_attempt() { return watch_.begin_discovery(); }
  // An attempt has ended. If a sentinel has reported a later primary meanwhile, `outcome` becomes a
  // failure, and the next attempt begins without a pause.
  void on_attempt_over(sentinel::Knowledge &&known, sentinel::Opinion &&opinion,
                       Outcome &outcome) noexcept;
  // One has connected. Throws std::bad_alloc.
  void note_success(const ServerFacts &facts);

  // ---- connections to sentinels

  // @return true: the connection to the primary, and an attempt to make it, must end now. The old
  // primary may accept writes for long: nothing more is sent to it. Throws std::bad_alloc, and then
  // both must end, too.
  [[nodiscard]] bool on_reply(size_t number, const Reply &reply, const sentinel::Send &send,
                              Nanos now);
  // The connection has ended, or could not be made. The connection to the primary stays.
  // `is_closing`: the client is shut down, and that is not logged.
  void on_ended(size_t number, const Outcome &why, uint64_t entropy, bool is_closing,
                Nanos now) noexcept;

 private:
  const Settings &settings_;
  Log &log_;
  sentinel::PrimaryWatch watch_;
  bool is_hurried_ = false;
  HostPort logged_;  // the primary of the last line about one
  ServerAge age_;    // of the primary, if it was measured
};

}  // namespace redlatch::driver
