// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// PrimaryWatch: which sentinels are heard, what each has said, and when the primary is left. Each
// known sentinel is watched on a connection of its own, by a SentinelWatch. Events in, commands and
// values out; no socket, no clock.
//
// The primary is left at the first news from any sentinel: no majority is needed, because Discovery
// decides where to go. A message has no epoch. A sentinel whose last answer was not behind can only
// report a later failover: its message counts at once. The message of one that was behind may be a
// late copy: its next answer, which has an epoch, decides. An epoch that was seen never goes back,
// except when more than half of the sentinels name a lower one to a discovery, because an operator
// has reset them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/limits.h"
#include "base/reply.h"
#include "base/settings.h"
#include "base/status.h"
#include "sentinel/conversation.h"
#include "sentinel/discovery.h"
#include "sentinel/sentinel_watch.h"
#include "timing/backoff.h"

namespace redlatch::sentinel {

class PrimaryWatch {
 public:
  // Dials at the same time. One that cannot be reached takes connect_timeout.
  static constexpr size_t kMaxDials = 4;

  // `settings` outlives it.
  explicit PrimaryWatch(const Settings &settings) : settings_(settings) {}

  // ---- discoveries

  // @return what the discovery begins with.
  const Knowledge &begin_discovery() {
    is_news_ = false;
    return known_;
  }
  // A discovery has ended, with or without a primary. @return false if the one that it found must
  // not be used, because of what was heard meanwhile: another discovery is needed. Otherwise
  // `opinion`, which named it, is exchanged for the one before.
  bool on_found(Knowledge &&found, Opinion &opinion) noexcept;
  void on_not_found(Knowledge &&found) noexcept;
  const Knowledge &known() const { return known_; }
  const Opinion &opinion() const { return opinion_; }  // which sentinel named the primary

  // ---- the connections, numbered below size()

  size_t size() const { return slots_.size(); }
  // The sentinel to dial now, if any; settings_of() it. on_dialled() or on_ended() follows.
  std::optional<size_t> begin_dial(Nanos now);
  Settings settings_of(size_t number) const {
    return settings_.of_sentinel(slots_[number].sentinel);
  }
  // `dialled`: settings_of(), with the password of now.
  void on_dialled(size_t number, const Settings &dialled, const Send &send, Nanos now);
  // @return the news that end the primary: the link to it must end, and so must a discovery.
  std::optional<Opinion> on_reply(size_t number, const Reply &reply, const Send &send, Nanos now);
  void on_timer(size_t number, const Send &send, Nanos now);
  // The connection is of no use any more: close it, then on_ended().
  bool is_over(size_t number) const;
  const Outcome &outcome(size_t number) const { return slots_[number].watch->outcome(); }
  // It has ended, or could not be made. @return true if none is left and each sentinel has been
  // tried, for the first time since one was heard.
  bool on_ended(size_t number, Nanos now, uint64_t entropy) noexcept;
  // The next time for on_timer() of some connection or, if `may_dial`, for begin_dial().
  Nanos next_due(bool may_dial) const;

  // The sentence of the model that does not hold, or null.
  const char *check() const;

 private:
  enum class State : uint8_t { kIdle, kDialling, kOpen };
  struct Slot {
    HostPort sentinel;      // without host: this slot is free
    bool is_known = false;  // the sentinel is still among those of the URL and of discoveries
    State state = State::kIdle;
    std::optional<SentinelWatch> watch;  // kOpen
    bool has_answered = false;           // on this connection
    int64_t epoch = -1;                  // in its last answer; -1: hidden
    timing::Backoff backoff{50 * kMs, 5'000 * kMs};
    size_t failure_count = 0;  // in a row
    Nanos dial_at = 0;
  };

  void assign();
  bool is_news(const Slot &slot, const Opinion &opinion) const;
  void note_answer(Slot &slot, const Opinion &opinion);
  size_t dial_count() const;
  bool is_deaf() const;

  const Settings &settings_;
  Knowledge known_;
  Opinion opinion_;
  bool is_news_ = false;       // since the discovery began
  bool is_confirmed_ = false;  // known_.primary was connected to
  bool is_list_old_ = true;
  bool was_deaf_ = false;
  std::array<Slot, kMaxSentinels> slots_;
};

}  // namespace redlatch::sentinel
