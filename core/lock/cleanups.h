// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Cleanups: tokens that are given up, with their place in the queue and their lock. CANCEL and
// RELEASE are sent until the server has nothing of a token, and the caller of a release gets their
// result. Cleanup decides what is sent.
#pragma once

#include <string_view>

#include "lock/call.h"
#include "lock/contention.h"
#include "lock/part.h"
#include "lock/server.h"

namespace redlatch::lock {

class Cleanups : private Part {
 public:
  class Owner {
   public:
    // `server_ms`: the server's clock in ms, in the answer to a command sent at `sent_at`; 0: not
    // known.
    virtual void note_time(Server &server, Nanos sent_at, Nanos now, int64_t server_ms) = 0;

   protected:
    ~Owner() = default;
  };

  Cleanups(const Part &part, Owner &owner) : Part(part), owner_(owner) {}

  // `record` is given up. Nothing is sent before `not_before`.
  void start(TokenRecord &record, Nanos now, bool may_be_held = false, Nanos not_before = 0);
  // Gives a lock back that the client retains.
  void leave_retained(TokenRecord &record, Nanos now);
  // The server has just said that it knows nothing of `record`.
  void start_gone(TokenRecord &record, Nanos now);
  // The server may have `left` of `record`.
  void start_with(TokenRecord &record, ServerFootprint left, Nanos not_before, Nanos now);
  // A place in the queue without a caller must be cancelled before the release, which would grant
  // it.
  void give_up_vacant_place(LockState &lock, Nanos now);
  // `releaser` gets the result; may be null.
  void set_releaser(TokenRecord &record, std::shared_ptr<Request> releaser, Nanos now);
  // The caller of the release is answered before the result is known.
  void answer_releaser(TokenRecord &record, Status status, std::string_view message = {});

  // Cleans up the old tokens of records that have got new ones.
  void start_renamed(Locks::NewTokens &tokens, Nanos now) noexcept;
  // The answer of a script about `lock`. If the script stopped before the end of the queue, SERVE
  // QUEUE is sent.
  void on_script_answer(const Call &call, const protocol::CountAnswer &answer,
                        const std::shared_ptr<LockState> &lock, Nanos now);
  void serve_queue(const std::shared_ptr<LockState> &lock, Nanos now);
  // Releases a grant to a token that has ended; a new primary with an older queue makes one. If the
  // answer is lost, the grant ends with its provisional ttl.
  void give_back_stale(Server &server, const protocol::Push &push, Nanos now);

  // ---- of a record in this phase
  void on_due(TokenRecord &record, Nanos now);
  // A message says that its token was granted.
  void on_grant(TokenRecord &record, Nanos now);
  // The client shuts down: holders get no more notice.
  void retry_now(TokenRecord &record, Nanos now);

  // ---- whether a lock is ever free, for the turns of other libraries
  void saw_busy(const LockState &lock, Nanos now) { contention_.saw_busy(lock.keys.lock, now); }
  // An answer about a reader does not say that the lock is free: others may read.
  void saw_free(const TokenRecord &record);

 private:
  struct Kind final : LockCallKind {
    explicit Kind(Cleanups &of) : LockCallKind(of.redirects_), cleanups(of) {}
    bool is_repeated() const override { return true; }
    void on_answer(const Call &call, const Reply &reply, Nanos now) const override {
      cleanups.on_answer(call, reply, now);
    }
    void on_unknown_script(const Call &, Nanos) const override;
    void on_lost(const Call &, Nanos) const override;
    void on_not_done(const Call &, Nanos) const override;
    bool on_postponed(const Call &, Nanos retry_at, Nanos) const override;
    void ask_again(const Call &, Nanos) const override;
    const LockState *lock(const Call &call) const override { return record_of(call).lock.get(); }

    Cleanups &cleanups;
  };
  struct ServeQueue final : LockCallKind {
    explicit ServeQueue(Cleanups &of) : LockCallKind(of.redirects_), cleanups(of) {}
    void on_answer(const Call &, const Reply &, Nanos) const override;
    const LockState *lock(const Call &call) const override { return &call.about<LockState>(); }

    Cleanups &cleanups;
  };

  void give(TokenRecord &record, Cleanup::Step (Cleanup::*event)(Nanos, bool), Nanos now);
  void perform(TokenRecord &record, const Cleanup::Step &step, Nanos now,
               protocol::EvalMode eval = protocol::EvalMode::kDigest);
  void on_answer(const Call &call, const Reply &reply, Nanos now);
  void limit_releaser(TokenRecord &record, Nanos sent_at);
  void answer(TokenRecord &record, Cleanup::Result result);
  void answer_lost(TokenRecord &record) noexcept;
  void settle_note(TokenRecord &record, const protocol::CountAnswer &release);
  protocol::YieldPolicy yield_policy_at(const TokenRecord &record, Nanos now) const;

  Owner &owner_;
  const Kind release_{*this};
  const Kind cancel_{*this};
  const ServeQueue serve_queue_{*this};
  Contention contention_;
};

}  // namespace redlatch::lock
