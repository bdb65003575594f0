// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// HeldLease: the lease of an acquisition on the server, from its grant to its end. It knows until
// when the lease is certain, when it is renewed, and what its description says. A local hand-off
// gives the same lease to the next caller.
//
//   kIdle --start--> kHeld
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/limits.h"
#include "lock/lock_types.h"
#include "timing/waiting.h"

namespace redlatch::lock {

class HeldLease {
 public:
  enum class State : uint8_t { kIdle, kHeld };
  enum class Command : uint8_t { kNone, kExtend };
  enum class Transition : uint8_t {
    kNone,
    kExpired,
    kDefect,  // an event that the state does not allow
  };
  struct Step {
    Command command = Command::kNone;  // to send; then call sent() or not_sent()
    Transition transition = Transition::kNone;
    bool is_description = false;  // the extension writes who holds
    Nanos ttl = 0;                // that the extension asks for
  };
  static_assert(sizeof(Step) <= 64);
  // The answer to an extension.
  struct Extension {
    Nanos sent_at = 0;
    Nanos ttl = 0;
    int64_t server_ms = 0;
    bool is_description = false;
  };

  // ---- callers. `label` of the caller is exchanged with that of the one before.
  Step start(const Grant &grant, const LeaseTerms &terms, std::string &label, Nanos now,
             bool is_up);
  // True if the next caller of this client may have the lease without a word to the server.
  bool may_hand_off(Nanos next_ttl, bool must_be_confirmed, int64_t limit, Nanos now) const;
  // .. has a fence of its own.
  bool has_fences() const { return handoffs_.count + 1 < fence_count_; }
  Step hand_off(const LeaseTerms &terms, std::string &label, Nanos now, bool is_up);
  // It is released, lost or detached: `left` is what the cleanup needs to know of it.
  void leave(ServerFootprint &left) const;

  // ---- time and the connection
  // Renews, also before that is due.
  Step on_due(Nanos now, bool is_up) const;
  // The server may have restarted without its data: better to know at once.
  Step on_connected(Nanos now) const;
  void sent(bool is_description);
  void not_sent(Nanos now);  // for want of memory

  // ---- answers to EXTEND: on_answered(), and one of the others while held
  void on_answered() {
    assert(state_ == State::kHeld);
    is_extending_ = false;
  }
  Step on_confirmed(const Extension &answer, Nanos now, bool is_up, uint64_t random);
  // `is_description`: that was refused, and is sent again.
  void on_refused(bool is_description, Nanos now);
  Step on_unknown_script(bool is_description, Nanos now, bool is_up);
  void on_answer_lost(bool is_description);

  // ---- other answers
  // To another command of this token that was sent at `sent_at` and asked for `ttl`.
  Step prolong(Nanos sent_at, Nanos ttl, Nanos now, uint64_t random);
  // To an extension by the caller: `ttl` is that of all later renewals.
  Step change_ttl(Nanos sent_at, Nanos ttl, Nanos now, uint64_t random);
  // Another server has it now. `clock`: that of the server before, minus the local one, if known.
  void on_moved(std::optional<Nanos> clock);
  // The clock of the server that has it now is known. As far as it is ahead of that which has
  // granted or extended the lease, the server ends the lease earlier, so a renewal may be needed
  // that max_hold made unnecessary before.
  void on_clock(Nanos clock, Nanos now);
  // A reader has become the writer, or the other way round.
  void on_upgraded(int64_t fence, int64_t since_ms);
  void on_downgrade() {
    assert(state_ == State::kHeld);
    must_describe_ = is_describable_ = false;
  }

  // ---- what is known
  State state() const { return state_; }
  Nanos deadline() const { return std::min(deadline_, end_at_); }
  bool is_over(Nanos now) const { return now >= deadline(); }
  Nanos renewal_at() const { return renewal_at_; }
  bool is_extending() const { return is_extending_; }
  bool awaits_clock() const { return awaits_clock_; }  // between on_moved() and on_clock()
  // When to call on_due(), if not at the deadline.
  Nanos due(bool is_up) const { return is_up && !is_extending_ ? renewal_at_ : kNever; }
  // As far as the server has confirmed it; max_hold may end it earlier.
  Nanos held_until() const { return deadline_; }
  Nanos granted_at() const { return granted_at_; }  // to this caller
  Nanos ttl() const { return ttl_; }
  Nanos end_at() const { return end_at_; }
  bool is_renewed() const { return is_renewed_; }
  bool is_provisional() const { return is_provisional_; }
  // That of the grant, and that of this caller: each local hand-off has one of its own.
  int64_t granted_fence() const { return fence_; }
  int64_t fence() const { return fence_ + handoffs_.count; }
  // That on the server, which leaves a usual number of fences above it.
  int64_t server_fence() const { return fence_ + fence_count_ - kUsualFences; }
  int handoff_count() const { return handoffs_.count; }
  int64_t attach_count() const { return attach_count_; }
  // True if a description is on the server, or on its way there.
  bool is_described() const { return is_described_; }
  const std::string &label() const { return label_; }
  int64_t since_ms() const { return since_ms_; }

  // The sentence of the model that does not hold, or null.
  const char *check() const;

 private:
  // A usual grant has its own one, and one for each local hand-off.
  static constexpr int64_t kUsualFences = kMaxLocalHandoffs + 1;
  // VOTE and ATTACH do not say when the lock was granted.
  bool is_undated() const { return since_ms_ == 0; }
  static Step defect() { return {.transition = Transition::kDefect}; }
  Step take(const LeaseTerms &terms, std::string &label, Nanos now, bool is_up);
  Step renew(Nanos now, bool is_up) const;
  Step confirm(Nanos sent_at, Nanos ttl, Nanos now, uint64_t random);
  void limit_renewal();

  State state_ = State::kIdle;
  bool is_renewed_ = false;
  bool is_provisional_ = false;  // an extension must confirm it
  bool is_extending_ = false;    // EXTEND is unanswered
  bool awaits_clock_ = false;
  bool is_describable_ = false;
  bool must_describe_ = false, is_described_ = false;
  Nanos granted_at_ = 0;
  Nanos ttl_ = 0;               // asked for by renewals
  Nanos deadline_ = 0;          // as far as the server has confirmed, drift taken off
  Nanos server_until_ = 0;      // .. of any caller: local hand-offs may have cut the deadline
  std::optional<Nanos> clock_;  // that the lease ends by, since it has moved
  Nanos cut_by_ = 0;            // since then
  Nanos end_at_ = kNever;
  Nanos renewal_at_ = kNever;
  int64_t since_ms_ = 0;
  int64_t fence_ = 0;
  int64_t fence_count_ = kUsualFences;
  int64_t attach_count_ = 0;
  timing::LocalHandoffs handoffs_;
  std::string label_;
};

}  // namespace redlatch::lock
