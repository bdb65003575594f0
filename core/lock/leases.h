// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Leases: renews, upgrades and confirms the leases that are held, until they are released, detached
// or lost. HeldLease, Upgrade and Replication decide what is sent. It compares the clocks of the
// nodes that a lease has come from and is at.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "lock/call.h"
#include "lock/cleanups.h"
#include "lock/confirmations.h"
#include "lock/part.h"
#include "lock/server.h"

namespace redlatch::lock {

class Leases : private Part, public Cleanups::Owner, public Confirmations::Owner {
 public:
  class Owner {
   public:
    // @return when `record`, whose upgrade was not granted, asks again if no message comes.
    virtual Nanos plan_recheck(TokenRecord &record, const protocol::AcquireAnswer &answer,
                               Nanos now) = 0;

   protected:
    ~Owner() = default;
  };

  Leases(const Part &part, Cleanups &cleanups, Owner &owner)
      : Part(part), cleanups_(cleanups), owner_(owner) {}

  // ---- renewals
  // Set the lease's deadline and the record's timer from what is known now.
  void schedule(TokenRecord &record, Nanos now);
  // The timer of a record that is held.
  void on_due(TokenRecord &record, Nanos now);
  void send_extend(TokenRecord &record, const HeldLease::Step &step, Nanos now,
                   protocol::EvalMode eval = protocol::EvalMode::kDigest,
                   protocol::Extent extent = protocol::Extent::kAll);
  // The server has confirmed `lease` to a message sent at `sent_at`.
  void prolong(TokenRecord &record, Nanos sent_at, Nanos lease, Nanos now) override;
  void write_extend(protocol::Command &out, const TokenRecord &record, Nanos lease,
                    protocol::EvalMode eval, const protocol::HolderInfo *info) const override;
  void write_extend_part(protocol::Command &out, const TokenRecord &record, Nanos lease,
                         protocol::EvalMode eval, protocol::Extent extent);
  // @return whether `call` is not the last of its parts.
  bool extend_next_part(const Call &call, const protocol::CountAnswer &answer, Nanos now);
  static protocol::Refusal read_extension(const Call &call, const Reply &reply,
                                          protocol::CountAnswer &answer);

  void note_time(Server &server, Nanos sent_at, Nanos now, int64_t server_ms) override;
  // Gives the clock of this node to leases that came from another one.
  void compare_clocks(Server &server, Nanos now) noexcept;

  // ---- between reading and writing
  void start_upgrade(const std::shared_ptr<Request> &request, Nanos now);
  void resume_upgrade(TokenRecord &record, Nanos now,
                      protocol::EvalMode eval = protocol::EvalMode::kDigest) {
    if (!record.upgrade) return schedule(record, now);
    carry_out(record, record.upgrade->give(&Upgrade::resume, now, readiness_of(record)), now, eval);
  }
  void finish_upgrade(TokenRecord &record, Status status, std::string_view message = {});
  void give_up_upgrade(TokenRecord &record, Status status, std::string_view message, Nanos now);
  void on_upgrade_push(TokenRecord &record, Nanos now);
  void roll_back_downgrade(Request &request, Nanos now);

  // Another client asks the holder to finish. `reason`: of another party.
  void on_recall(TokenRecord &record, std::string_view reason) noexcept;

  // ---- the end
  bool is_held(Request &request, Nanos now);
  // True if the lease of `request`, which is held, can have a run or a flight. Otherwise the
  // request is finished with the reason.
  bool may_run(Request &request);
  void end_lease(TokenRecord &record, Lease::State state, Loss loss);
  // `releaser` gets the result; may be null.
  void give_back(TokenRecord &record, std::shared_ptr<Request> releaser, Nanos now);
  void lose(TokenRecord &record, Loss loss, bool is_gone, Nanos now) override;
  void lose_predecessor(const TokenRecord &record, Nanos now);
  void leave_to_ttl(Lease &lease) noexcept;
  // As leave_to_ttl(), and cancels a vacant place in the queue.
  void drop(Lease &lease, Nanos now);
  // Loses `lease`. RELEASE follows when the holder has had its notice.
  void release_after_notice(Lease &lease, Nanos now);
  void clean_up_detached(TokenRecord &record, Nanos now);
  void fail_confirmation(TokenRecord &record, Status status, std::string_view message,
                         Nanos now) override;

 private:
  struct Kind : LockCallKind {
    explicit Kind(Leases &of) : LockCallKind(of.redirects_), leases(of) {}
    void ask_again(const Call &, Nanos) const override;
    const LockState *lock(const Call &call) const override;

    Leases &leases;
  };
  struct Extend final : Kind {
    using Kind::Kind;
    void on_answer(const Call &call, const Reply &reply, Nanos now) const override {
      leases.on_extend_reply(call, reply, now);
    }
    void on_unknown_script(const Call &, Nanos) const override;
    void on_lost(const Call &, Nanos) const override;
    void on_not_done(const Call &, Nanos) const override;
    void extend_lock_key(const Call &, Nanos) const override;
    bool is_extension(const Call &) const override { return true; }
  };
  struct Upgrading final : Kind {
    using Kind::Kind;
    void on_answer(const Call &call, const Reply &reply, Nanos now) const override {
      leases.on_upgrade_reply(call, reply, now);
    }
    void on_unknown_script(const Call &, Nanos) const override;
    void on_lost(const Call &, Nanos) const override;
    void on_not_done(const Call &, Nanos) const override;
  };
  // It ends an upgrade.
  struct RollBack final : Kind {
    using Kind::Kind;
    void on_answer(const Call &call, const Reply &reply, Nanos now) const override {
      leases.on_rollback_reply(call, reply, now);
    }
    void on_unknown_script(const Call &, Nanos) const override;
    void on_lost(const Call &, Nanos) const override;
    void on_not_done(const Call &, Nanos) const override;
  };

  // Confirmations::Owner
  void on_record_due(TokenRecord &record, Nanos now) override { on_due(record, now); }
  void on_redirected(const TokenRecord &record, const protocol::Redirect &redirect) override {
    redirects_.note(record.server(), redirect, record.lock.get());
  }
  void on_confirmed(TokenRecord &record) override;

  void on_extend_reply(const Call &call, const Reply &reply, Nanos now);
  void warn_of_clock(Server &server) noexcept;
  Loss why_over(const TokenRecord &record, Nanos now) const noexcept;
  Upgrade::Readiness readiness_of(const TokenRecord &record) const {
    return {redirects_.is_up(*record.lock), record.acquisition->is_unanswered()};
  }
  void carry_out(TokenRecord &record, Upgrade::Step step, Nanos now,
                 protocol::EvalMode eval = protocol::EvalMode::kDigest);
  void write_upgrade(protocol::Command &out, TokenRecord &record, Upgrade::Command what,
                     Nanos lease, protocol::EvalMode eval) const;
  bool awaits_upgrade(TokenRecord &record, Nanos now);
  void on_upgrade_reply(const Call &call, const Reply &reply, Nanos now);
  void on_upgrade_refused(TokenRecord &record, const protocol::Refusal &refusal, Nanos now);
  void become_writer(TokenRecord &record, int64_t fence, int64_t server_ms);
  void on_rollback_reply(const Call &call, const Reply &reply, Nanos now);
  void note_mode(TokenRecord &record, bool is_reader, Nanos now);

  Cleanups &cleanups_;
  Owner &owner_;
  const Extend extend_{*this};
  const Upgrading upgrade_{*this};
  const RollBack roll_back_{*this};
  std::string reader_key_;  // that the last command named: a Command only borrows it
};

}  // namespace redlatch::lock
