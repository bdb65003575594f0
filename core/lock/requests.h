// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Requests: connect, check, inspect, list, force, extend, downgrade, raise fence, begin run,
// detach, attach. A command whose answer is lost is sent again, except force, until the request has
// a result or its time is over. Waiters have acquires and start releases; Leases have upgrades.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "lock/call.h"
#include "lock/cleanups.h"
#include "lock/leases.h"
#include "lock/part.h"
#include "lock/server.h"
#include "lock/waiters.h"
#include "operate/health.h"
#include "operate/operation.h"
#include "operate/recalls.h"

namespace redlatch::lock {

class Requests : private Part, public operate::Health::Owner {
 public:
  Requests(const Part &part, Cleanups &cleanups, Leases &leases, Waiters &waiters)
      : Part(part), cleanups_(cleanups), leases_(leases), waiters_(waiters) {}

  // ---- calls of users
  void start(const std::shared_ptr<Request> &request, Nanos now);
  // Ends `request` before its answer. A downgrade is rolled back. A lease that DETACH may have
  // marked is left to its ttl. A late ATTACH is undone after kCancelled and kClosed.
  void give_up(Request &request, Status status, std::string_view message, Nanos now);
  Outcome why_late(const Request &request) const noexcept;
  // Finishes all requests at `server`: the client is shut down, or refused for good.
  void fail_all(const Server &server, Status status, std::string_view message);

  // ---- events
  void on_connected(const Server &server, Nanos now);
  void on_connect_failed(const Server &server, const Outcome &why);
  // `name` of the client `cid`; empty: not known. The last name finishes `inspection`.
  void on_name(Request &inspection, std::string_view cid, std::string_view name) noexcept;
  // At Server::resend_at.
  void resend_postponed(Server &server, Nanos now);

  // ---- between two servers
  // Adds the slots of their locks, and where these are.
  void add_slots(Moves &slots) const;
  void move(const Moves &moves) noexcept;
  // Removes a request at `server` about no lock, which is started at another one. nullptr: none.
  std::shared_ptr<Request> take_request(const Server &server);
  // Sends the requests about locks of these slots whose servers are up.
  void resume(const Moves &moves, Nanos now);

 private:
  using Phase = TokenRecord::Phase;
  using Answer = protocol::CountAnswer;

  // Calls whose subject is a Request.
  struct Kind : LockCallKind {
    explicit Kind(Requests &of) : LockCallKind(of.redirects_), requests(of) {}
    const LockState *lock(const Call &call) const override;
    Request *request(const Call &call) const override { return &call.about<Request>(); }

    Requests &requests;
  };
  // Sent again until it has an answer, or its request has ended.
  struct Repeated : Kind {
    using Kind::Kind;
    // `call` is of this kind. Not if its request ends instead.
    virtual void send(Call call) const = 0;
    void on_unknown_script(const Call &, Nanos) const override;
    void on_lost(const Call &, Nanos) const override;
    void on_not_done(const Call &, Nanos) const override;
    bool on_postponed(const Call &, Nanos, Nanos) const override;
    void ask_again(const Call &, Nanos) const override;
  };
  // Its request has a task.
  struct Operate final : Repeated {
    using Repeated::Repeated;
    void send(Call) const override;
    void on_answer(const Call &, const Reply &, Nanos) const override;
    bool on_left(const Call &, Nanos) const override;
    void carry_out(const Call &, const operate::Operation::Step &, Nanos) const;
  };
  // About a lease. Its answer is a number.
  struct OfLease : Repeated {
    using Repeated::Repeated;
    void send(Call) const override;
    void on_answer(const Call &, const Reply &, Nanos) const override;
    // Writes the command. Sets Call::lease if the command has a ttl.
    virtual void write(protocol::Command &, TokenRecord &, Call &) const {}
    virtual void on_sent(TokenRecord &) const {}
    virtual protocol::Refusal read(const Call &, const Reply &reply, Answer &answer) const {
      return decode(reply, answer);
    }
    virtual void on_refused(Request &, Nanos) const {}
    virtual void on_result(const Call &, const Answer &, Nanos) const = 0;
    // The request has ended before.
    virtual void on_late_answer(const Call &, const Reply &, Nanos) const {}
    bool is_held_still(Request &request, int64_t result, Nanos now) const;
  };
  // For a caller, with another ttl.
  struct Prolong final : OfLease {
    using OfLease::OfLease;
    void write(protocol::Command &, TokenRecord &, Call &) const override;
    protocol::Refusal read(const Call &, const Reply &, Answer &) const override;
    void on_result(const Call &, const Answer &, Nanos) const override;
    void extend_lock_key(const Call &, Nanos) const override;
    bool is_extension(const Call &) const override { return true; }
  };
  struct Downgrade final : OfLease {
    using OfLease::OfLease;
    void write(protocol::Command &, TokenRecord &, Call &) const override;
    void on_result(const Call &, const Answer &, Nanos) const override;
  };
  struct RaiseFence final : OfLease {
    using OfLease::OfLease;
    void write(protocol::Command &, TokenRecord &, Call &) const override;
    void on_result(const Call &, const Answer &, Nanos) const override;
  };
  struct BeginRun final : OfLease {
    using OfLease::OfLease;
    void write(protocol::Command &, TokenRecord &, Call &) const override;
    void on_result(const Call &, const Answer &, Nanos) const override;
    mutable std::string mark_key_;  // that the last command named: a Command only borrows it
  };
  struct Detach final : OfLease {
    using OfLease::OfLease;
    void write(protocol::Command &, TokenRecord &, Call &) const override;
    void on_sent(TokenRecord &) const override;
    void on_refused(Request &, Nanos) const override;
    void on_result(const Call &, const Answer &, Nanos) const override;
  };
  // The lease has no record yet.
  struct Attach final : OfLease {
    using OfLease::OfLease;
    void send(Call) const override;
    void on_result(const Call &, const Answer &, Nanos) const override;
    void on_late_answer(const Call &, const Reply &, Nanos) const override;
    bool delays_end(const Call &) const override;
  };
  // If no answer comes, the lease ends with its ttl.
  struct UndoAttach final : Kind {
    using Kind::Kind;
    void send(Call) const;
    void on_answer(const Call &, const Reply &, Nanos) const override {}
    void on_unknown_script(const Call &, Nanos) const override;
    bool delays_end(const Call &) const override { return true; }
  };

  // operate::Health::Owner
  void on_health(size_t node, const protocol::HealthFacts &facts,
                 const protocol::LockTrial *trial) override {
    output_.health_found(node, facts, trial);
  }
  void on_health_answered(const std::shared_ptr<void> &asker) override;
  void on_health_lost(const std::shared_ptr<void> &asker) override;

  void begin(const std::shared_ptr<Request> &request, Nanos now);
  void start_extend(const std::shared_ptr<Request> &request, Nanos now);
  void start_downgrade(const std::shared_ptr<Request> &request, Nanos now);
  bool may_send(const Request &request) const;
  void send(const std::shared_ptr<Request> &request, Nanos now,
            protocol::EvalMode eval = protocol::EvalMode::kDigest,
            protocol::Extent extent = protocol::Extent::kAll);
  const Repeated &kind_for(Request::Op op) const;
  bool name_clients(const std::shared_ptr<Request> &request, Nanos now);
  void finish(Request &request, Status status, std::string_view message = {}) noexcept;
  void finish_not_held(Request &request);  // with the reason
  bool end_detach(Request &request) noexcept;
  void remove(Request &request) noexcept;
  void take_out(Request &request) noexcept;
  template <class Action>
  void for_each(const Action &action);

  Cleanups &cleanups_;
  Leases &leases_;
  Waiters &waiters_;
  const Operate operate_{*this};
  const Prolong prolong_{*this};
  const Downgrade downgrade_{*this};
  const RaiseFence raise_fence_{*this};
  const BeginRun begin_run_{*this};
  const Detach detach_{*this};
  const Attach attach_{*this};
  const UndoAttach undo_attach_{*this};
  operate::Recalls recalls_;
  std::list<std::shared_ptr<Request>> open_;  // sent or not
};

}  // namespace redlatch::lock
