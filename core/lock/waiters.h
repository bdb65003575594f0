// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Waiters: acquires until their grant, and releases. Answers and messages decide which caller gets
// the lock; a release hands it off locally, or gives it back to the server. Acquisition, Waitlist
// and KeyWatch decide what is sent, who is next, and when a waiter asks again.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "lock/call.h"
#include "lock/cleanups.h"
#include "lock/leases.h"
#include "lock/part.h"
#include "lock/recall_pauses.h"
#include "lock/server.h"

namespace redlatch::lock {

class Waiters : private Part, public Leases::Owner {
 public:
  Waiters(const Part &part, Cleanups &cleanups, Leases &leases)
      : Part(part), cleanups_(cleanups), leases_(leases) {}

  // ---- callers
  void start(const std::shared_ptr<Request> &request, Nanos now);
  // `caller` is finished; its place goes to the others, or back to the server.
  void remove(Request &caller, Nanos now);
  // Finishes an acquire that may not wait with `status`, and cleans up its token.
  void refuse_try(TokenRecord &record, Status status, std::string_view message, Nanos now);
  void fail_callers(TokenRecord &record, Status status, std::string_view message, Nanos now,
                    bool may_be_held = false);
  // Drops all callers without a result, for ~LockClient().
  void forget_callers(TokenRecord &record);
  // Most of the wait is over: asks for the name of the holder.
  void on_slow(Request &request, Nanos now);
  Outcome why_not_yet(const Request &request, const TokenRecord &record) const noexcept;
  // The value is there for which the callers of `record` wait.
  void on_value_push(TokenRecord &record, Nanos now);
  // Another client asks for the lock that `record` has, or gets.
  void on_recall_push(TokenRecord &record, const protocol::Push &push, Nanos now);
  bool waits_for_itself(const Request &request) const;

  // ---- who gets the lock
  // `grant`: of the server; null: handed off by the caller before.
  void give_lease(TokenRecord &record, const std::shared_ptr<Request> &request, const Grant *grant,
                  Nanos now);
  // Finishes `request` at once after a local hand-off, else with the answer to RELEASE.
  void release(const std::shared_ptr<Request> &request, Nanos now);
  void release_async(Lease &lease, Nanos now);
  // The time for which the lock is retained is over.
  void on_retained_due(TokenRecord &record, Nanos now);
  // No local hand-off from here on.
  void stop_hand_offs() { may_hand_off_ = false; }

  // ---- commands
  // Send ACQUIRE: the first time, as a poll, or after a lost answer. The same token each time.
  void ask(TokenRecord &record, Nanos now, protocol::EvalMode eval = protocol::EvalMode::kDigest);
  // Sends ACQUIRE for the waiters at `server` of `slots` (null: of all that do not move), before
  // cleanups and above the limit in flight.
  void resume(Server &server, const Moves *slots, Nanos now);
  void on_due(TokenRecord &record, Nanos now) {
    record.front() == nullptr ? cleanups_.start(record, now) : ask(record, now);
  }
  // Sends ACQUIREs that were delayed, while the session has room.
  void send_throttled(Server &server, Nanos now);
  // ---- messages
  void on_grant_push(TokenRecord &record, const protocol::Push &push, Nanos now);
  void on_notice_push(TokenRecord &record, const protocol::Push &push, Nanos now);
  // `key`: nullopt: all keys.
  void on_invalidated(const Server &server, std::optional<std::string_view> key, Nanos now);
  Nanos plan_recheck(TokenRecord &record, const protocol::AcquireAnswer &answer,
                     Nanos now) override;

 private:
  using Phase = TokenRecord::Phase;

  struct Kind : LockCallKind {
    explicit Kind(Waiters &of) : LockCallKind(of.redirects_), waiters(of) {}
    void ask_again(const Call &, Nanos) const override;
    const LockState *lock(const Call &call) const override;

    Waiters &waiters;
  };
  struct Acquire final : Kind {
    using Kind::Kind;
    void on_answer(const Call &call, const Reply &reply, Nanos now) const override {
      waiters.on_acquire_reply(call, reply, now);
    }
    void on_unknown_script(const Call &, Nanos) const override;
    void on_lost(const Call &, Nanos) const override;
    void on_not_done(const Call &, Nanos) const override;
  };
  // It prepares FindKey.
  struct Track final : Kind {
    using Kind::Kind;
    void on_answer(const Call &, const Reply &, Nanos) const override;
  };
  // Is the key that is tracked from now on still there?
  struct FindKey final : Kind {
    using Kind::Kind;
    void on_answer(const Call &call, const Reply &reply, Nanos now) const override {
      waiters.on_key_found(record_of(call), reply, now);
    }
  };

  struct Served {
    std::shared_ptr<Request> caller;
    TokenRecord *next;
  };

  // Sends ACQUIRE without the checks of ask(), which the caller has made.
  void send_ask(TokenRecord &record, Nanos now, protocol::EvalMode eval);
  // Give the lock to the next caller of this client without asking the server, if its turn allows.
  bool hand_off_locally(TokenRecord &record, Nanos now);
  // The steps of start(): those that throw come before those that change the lock.
  static void prepare(Request &request, Nanos now);
  static void set_lock(Request &request, const std::shared_ptr<LockState> &lock) noexcept;
  TokenRecord *open_place(const Request &request, const std::shared_ptr<LockState> &lock);
  void join(const std::shared_ptr<Request> &request, TokenRecord *created, Nanos now);
  bool may_retain(const TokenRecord &record, Nanos now) const;
  bool retain(TokenRecord &record, Nanos now);
  bool may_take(const TokenRecord &record, const AcquireOptions &options, Nanos now) const;
  bool take_retained(LockState &lock, const std::shared_ptr<Request> &request, Nanos now);
  bool await_recall(TokenRecord &record, Nanos asked_at, Nanos now);
  bool is_misused(Request &request, Nanos now);
  std::shared_ptr<Request> take_front(TokenRecord &record);
  std::shared_ptr<Request> taken(const Waitlist::Step &step);
  Served take_with_place(TokenRecord &record);
  void follow(TokenRecord &record, const Acquisition::Step &step, Nanos now);
  void on_acquire_reply(const Call &call, const Reply &reply, Nanos now);
  void on_granted(TokenRecord &record, const Call &call, const protocol::AcquireAnswer &answer,
                  Nanos now);
  void on_queued(TokenRecord &record, const Call &call, const protocol::AcquireAnswer &answer,
                 Nanos now);
  void note_other_limit(const TokenRecord &record, const protocol::AcquireAnswer &answer) noexcept;
  void on_acquire_refused(TokenRecord &record, const protocol::Refusal &refusal, Nanos now);
  static bool is_fence_plausible(const TokenRecord &record, const protocol::Push &push);
  void serve_front(TokenRecord &record, const Grant &grant, Nanos now);
  void fail_front(TokenRecord &record, Status status, std::string_view message, Nanos now);
  void note_late_grant(const TokenRecord &record, const protocol::AcquireAnswer &answer, Nanos now);
  bool track_key(TokenRecord &record, Nanos now);
  void on_key_found(TokenRecord &record, const Reply &reply, Nanos now);
  void recheck(const KeyWatch::Step &step, Nanos now);
  bool awaits_name(TokenRecord &record, Nanos now);
  void ask_wanted_name(LockState &lock, Nanos now);

  Cleanups &cleanups_;
  Leases &leases_;
  const Acquire acquire_{*this};
  const Track track_{*this};
  const FindKey find_key_{*this};
  RecallPauses pauses_;
  bool may_hand_off_ = true;
  bool has_noted_limit_ = false;
};

}  // namespace redlatch::lock
