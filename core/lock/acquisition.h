// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Acquisition: one token on its way to a grant. ACQUIRE is sent, and sent again with the same
// token: as a poll, after a lost answer, or after a refusal that may pass.
//
//   kAsking --queued--> kQueued      kAsking, kQueued --granted--> kGranted --give_up--> kOver
//                                    kAsking, kQueued --give_up--> kOver
//
// An answer to a poll may arrive behind a grant by message. Then the token may be queued again;
// give_up() says so in the footprint, for the cleanup.
#pragma once

#include <cassert>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "lock/lock_types.h"
#include "timing/backoff.h"

namespace redlatch::lock {

class Acquisition {
 public:
  enum class State : uint8_t { kAsking, kQueued, kGranted, kOver };
  enum class Command : uint8_t { kNone, kAcquire };
  enum class Transition : uint8_t {
    kNone,
    kGranted,   // the first caller gets the lease
    kUnwanted,  // it was granted, and no caller is left
    kTooShort,  // the answer took longer than the ttl, twice
    kFailed,    // one try that was not sent, or got no answer
    kDefect,    // an event that the state does not allow
  };
  struct Step {
    Command command = Command::kNone;  // to send when the client has room for it
    Transition transition = Transition::kNone;
    Nanos due = kNever;  // when to send ACQUIRE again; kNever: as before
    Grant grant = {};
  };
  static_assert(sizeof(Step) <= 64);
  // The caller that is first, if there is one.
  struct Front {
    bool is_there = false;
    bool is_confirmed = false;  // it wants no provisional lease
    Nanos ttl = 0;
  };
  // An ACQUIRE that was granted.
  struct Answer {
    Nanos sent_at = 0;
    Nanos ttl = 0;
    int64_t fence = 0;
    int64_t server_ms = 0;
  };
  // A grant by message.
  struct Message {
    std::string_view key_digest;
    int64_t provisional_ms = 0;       // how long it may be believed
    std::optional<Nanos> granted_at;  // if the server's clock is known
    int64_t fence = 0;
    int64_t server_ms = 0;
    bool is_plausible = false;  // a script of ours can have minted the fence
    // The server knew that the message would arrive. Otherwise the script may have taken this
    // client for dead, and the grant back.
    bool is_counted = false;
  };

  // `is_queueable`: its token has a member of the server's queue; else it is one try.
  void open(bool is_queueable, int64_t provisional_ms, Nanos ttl);

  // A caller got the lease: after the transition kGranted, which may have failed for want of memory
  // before, or by ATTACH.
  void served() {
    assert(waits());
    state_ = State::kGranted;
    poll_hint_at_ = kNever;
  }

  // ---- ACQUIRE. prepare(), then sent() or not_sent().
  bool may_ask(bool is_up) const { return is_up && waits() && !is_unanswered_; }
  void prepare(const Front &front);
  void sent() {
    assert(waits() && !is_unanswered_);
    is_unanswered_ = true;
    was_sent_ = true;
  }
  Step not_sent(Nanos now);  // for want of memory

  // ---- its answers: on_answered(), and one of the others while it waits
  void on_answered() {
    assert(is_unanswered_);
    is_unanswered_ = false;
  }
  Step on_granted(const Answer &answer, const Front &front, Nanos now);
  Step on_queued(std::string_view ticket, std::string_view key_digest);
  // After on_queued(): it polls `delay` from now. `has_more`: this call has dropped as many dead
  // waiters as one call may, and the next continues.
  Step wait(Nanos delay, bool has_more, const Front &front, Nanos now);
  Step on_postponed(Nanos now, uint64_t random);
  // A poll that crossed a grant by message was refused: it may have queued the token again.
  void on_requeued() { may_be_queued_ = is_queueable(); }
  // Connected again, maybe to another server: it may have the place in the queue, not the grant.
  void on_new_server() {
    may_be_queued_ = may_be_queued_ || (state_ == State::kGranted && was_queued());
  }
  // The connection ended before the answer: it may take effect until then.
  Step on_answer_lost(Nanos late_apply_until);

  // ---- messages
  Step on_message(const Message &message, const Front &front, Nanos now);
  // It pays to ask at `at`. @return whether the answer under way is waited for first.
  bool keep_hint(Nanos at);

  // The token is replaced by another one, which keeps the ticket. @return what the server may have
  // of the old one.
  ServerFootprint replace_token(Nanos now);
  // No caller wants the token any more, or its lease has ended.
  // `is_unanswered`: another command that may queue the token.
  ServerFootprint give_up(bool is_unanswered, Nanos now);

  // ---- what is known
  State state() const { return state_; }
  bool is_queueable() const { return is_queueable_; }
  bool is_unanswered() const { return is_unanswered_; }
  // The server may know its token.
  bool was_sent() const { return was_sent_; }
  bool is_outcome_unknown() const { return is_unanswered_ || late_apply_until_ > 0; }
  bool may_be_queued() const { return may_be_queued_; }
  Nanos late_apply_until() const { return late_apply_until_; }
  const std::string &ticket() const { return ticket_; }
  const std::string &key_digest() const { return key_digest_; }
  Nanos ttl() const { return ttl_; }

  // It may have stood in the queue.
  bool was_queued() const { return is_queueable_ && (!ticket_.empty() || late_apply_until_ > 0); }

  // The sentence of the model that does not hold, or null.
  const char *check() const;

 private:
  bool waits() const { return state_ == State::kAsking || state_ == State::kQueued; }
  static Step defect() { return {.transition = Transition::kDefect}; }

  State state_ = State::kAsking;
  bool is_queueable_ = false;
  bool is_unanswered_ = false;
  bool was_sent_ = false;
  bool may_be_queued_ = false;   // behind a grant
  uint8_t too_short_count_ = 0;  // grants in a row that left no validity
  std::string ticket_, key_digest_;
  int64_t provisional_ms_ = 0;
  Nanos ttl_ = 0;                // of the last ACQUIRE
  Nanos poll_hint_at_ = kNever;  // a message that came before the answer
  Nanos late_apply_until_ = 0;
  timing::Backoff retry_ = timing::kServerRetry;
};

}  // namespace redlatch::lock
