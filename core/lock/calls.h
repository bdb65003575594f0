// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The calls of LockClient, one of each kind.
#pragma once

#include "lock/lock_client.h"

namespace redlatch::lock {

struct LockClient::Calls {
  using Answer = protocol::CountAnswer;

  struct Kind : LockCallKind {
    explicit Kind(LockClient &client) : client_(client) {}
    LockClient &client_;
  };
  // They name keys of a slot, whose node may change.
  struct OfSlot : Kind {
    using Kind::Kind;
    bool take_redirect(const Call &, const Reply &, Nanos) const override;
  };
  // Their subject is a request without a record.
  struct OfRequest : OfSlot {
    using OfSlot::OfSlot;
    const LockState *lock(const Call &call) const override;
    Request *request(const Call &call) const override;
  };
  // Sent again until it has an answer, or its request has ended.
  struct Immediate : OfRequest {
    using OfRequest::OfRequest;
    // `call` is of this kind. Not if its request ends instead.
    virtual void send(Call call) const = 0;
    void on_unknown_script(const Call &, Nanos) const override;
    void on_lost(const Call &, Nanos) const override;
    void on_not_done(const Call &, Nanos) const override;
    bool on_postponed(const Call &, Nanos, Nanos) const override;
    void ask_again(const Call &, Nanos) const override;
  };
  // Its request has a task.
  struct Operate final : Immediate {
    using Immediate::Immediate;
    void send(Call) const override;
    void on_answer(const Call &, const Reply &, Nanos) const override;
    void carry_out(const Call &, const operate::Operation::Step &, Nanos) const;
  };
  // About a lease. Its answer is a number.
  struct OfLease : Immediate {
    using Immediate::Immediate;
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
  struct UndoAttach final : OfRequest {
    using OfRequest::OfRequest;
    void send(Call) const;
    void on_answer(const Call &, const Reply &, Nanos) const override {}
    void on_unknown_script(const Call &, Nanos) const override;
    bool delays_end(const Call &) const override { return true; }
  };

  struct ServeQueue final : OfSlot {
    using OfSlot::OfSlot;
    void on_answer(const Call &, const Reply &, Nanos) const override;
    const LockState *lock(const Call &call) const override;
  };

  // It was asked for by the client of another node.
  struct Delegated final : Kind {
    using Kind::Kind;
    void on_answer(const Call &, const Reply &, Nanos) const override;
    void on_lost(const Call &, Nanos) const override;
  };
  // It prepares Delegated.
  struct Asking final : Kind {
    using Kind::Kind;
    void on_answer(const Call &, const Reply &, Nanos) const override;
  };

  explicit Calls(LockClient &owner) : client(owner) {}
  const Immediate &of(Request::Op op) const;

  LockClient &client;
  const Operate operation{client};
  const Prolong prolong{client};
  const Downgrade downgrade{client};
  const RaiseFence raise_fence{client};
  const Detach detach{client};
  const Attach attach{client};
  const UndoAttach undo_attach{client};
  const ServeQueue serve_queue{client};
  const Delegated delegated{client};
  const Asking asking{client};
};

}  // namespace redlatch::lock
