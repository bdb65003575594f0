// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The calls of LockClient, one of each kind.
#pragma once

#include "lock/lock_client.h"

namespace redlatch::lock {

struct LockClient::Calls {
  struct Kind : LockCallKind {
    explicit Kind(LockClient &client) : client_(client) {}
    LockClient &client_;
  };
  // They name keys of a slot, whose node may change.
  struct OfSlot : Kind {
    using Kind::Kind;
    bool take_redirect(const Call &, const Reply &, Nanos) const override;
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

  LockClient &client;
  const ServeQueue serve_queue{client};
  const Delegated delegated{client};
  const Asking asking{client};
};

}  // namespace redlatch::lock
