// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The calls of LockClient, one of each kind.
#pragma once

#include "lock/lock_client.h"

namespace redlatch::lock {

struct LockClient::Calls {
  // About keys of a slot.
  struct OfSlot : LockCall {
    using LockCall::LockCall;
    bool is_redirected(const InFlight &, const Reply &, Nanos) const override;
  };
  // About the record of a token.
  struct OfRecord : OfSlot {
    using OfSlot::OfSlot;
    void ask_again(const InFlight &in_flight, Nanos now) const override;
    const LockState *lock(const InFlight &in_flight) const override;
  };
  struct Acquire final : OfRecord {
    using OfRecord::OfRecord;
    void on_answer(const InFlight &, const Reply &, Nanos) const override;
    void on_unknown_script(const InFlight &, Nanos) const override;
    void on_lost(const InFlight &, Nanos) const override;
    void on_not_done(const InFlight &, Nanos) const override;
  };
  struct Extend final : OfRecord {
    using OfRecord::OfRecord;
    void on_answer(const InFlight &, const Reply &, Nanos) const override;
    void on_unknown_script(const InFlight &, Nanos) const override;
    void on_lost(const InFlight &, Nanos) const override;
    void on_not_done(const InFlight &, Nanos) const override;
    void extend_lock_key(const InFlight &, Nanos) const override;
    bool is_extension(const InFlight &) const override { return true; }
  };
  struct Upgrading final : OfRecord {
    using OfRecord::OfRecord;
    void on_answer(const InFlight &, const Reply &, Nanos) const override;
    void on_unknown_script(const InFlight &, Nanos) const override;
    void on_lost(const InFlight &, Nanos) const override;
    void on_not_done(const InFlight &, Nanos) const override;
  };
  // Ends an upgrade.
  struct RollBack final : OfRecord {
    using OfRecord::OfRecord;
    void on_answer(const InFlight &, const Reply &, Nanos) const override;
    void on_unknown_script(const InFlight &, Nanos) const override;
    void on_lost(const InFlight &, Nanos) const override;
    void on_not_done(const InFlight &, Nanos) const override;
  };
  // RELEASE or CANCEL.
  struct CleanUp final : OfRecord {
    using OfRecord::OfRecord;
    bool is_repeated() const override { return true; }
    void on_answer(const InFlight &, const Reply &, Nanos) const override;
    void on_unknown_script(const InFlight &, Nanos) const override;
    void on_lost(const InFlight &, Nanos) const override;
    void on_not_done(const InFlight &, Nanos) const override;
    bool on_postponed(const InFlight &, Nanos, Nanos) const override;
  };
  // Prepares FindKey.
  struct Track final : OfRecord {
    using OfRecord::OfRecord;
    void on_answer(const InFlight &, const Reply &, Nanos) const override;
  };
  // Is the key that is tracked from now on still there?
  struct FindKey final : OfRecord {
    using OfRecord::OfRecord;
    void on_answer(const InFlight &, const Reply &, Nanos) const override;
  };

  // About a request without a record.
  struct OfRequest : OfSlot {
    using OfSlot::OfSlot;
    const LockState *lock(const InFlight &in_flight) const override;
    Request *request(const InFlight &in_flight) const override;
  };
  struct Ask final : OfRequest {
    using OfRequest::OfRequest;
    void on_answer(const InFlight &, const Reply &, Nanos) const override;
    void on_unknown_script(const InFlight &, Nanos) const override;
    void on_lost(const InFlight &, Nanos) const override;
    void on_not_done(const InFlight &, Nanos) const override;
    bool on_postponed(const InFlight &, Nanos, Nanos) const override;
    void ask_again(const InFlight &, Nanos) const override;
    void extend_lock_key(const InFlight &, Nanos) const override;
    bool is_extension(const InFlight &in_flight) const override;
    bool undoes_attach(const InFlight &in_flight) const override;
  };
  // Looks at a key that a listing has found.
  struct InspectKey final : OfRequest {
    using OfRequest::OfRequest;
    void on_answer(const InFlight &, const Reply &, Nanos) const override;
  };
  // If no answer comes, the lease ends with its ttl.
  struct UndoAttach final : OfRequest {
    using OfRequest::OfRequest;
    void on_answer(const InFlight &, const Reply &, Nanos) const override {}
    void on_unknown_script(const InFlight &, Nanos) const override;
    bool undoes_attach(const InFlight &) const override { return true; }
  };

  struct ServeQueue final : OfSlot {
    using OfSlot::OfSlot;
    void on_answer(const InFlight &, const Reply &, Nanos) const override;
    const LockState *lock(const InFlight &in_flight) const override;
  };
  struct Announce final : LockCall {
    using LockCall::LockCall;
    void on_answer(const InFlight &, const Reply &, Nanos) const override;
  };
  struct AskName final : LockCall {
    using LockCall::LockCall;
    void on_answer(const InFlight &, const Reply &, Nanos) const override;
    void on_lost(const InFlight &, Nanos) const override;
    const LockState *lock(const InFlight &in_flight) const override;
  };
  struct Health final : LockCall {
    using LockCall::LockCall;
    bool is_for_primary() const override { return false; }
    void on_answer(const InFlight &, const Reply &, Nanos) const override;
    void on_lost(const InFlight &, Nanos) const override;
  };

  // For the client of another node.
  struct Delegated final : LockCall {
    using LockCall::LockCall;
    void on_answer(const InFlight &, const Reply &, Nanos) const override;
    void on_lost(const InFlight &, Nanos) const override;
  };
  // Prepares Delegated.
  struct Asking final : LockCall {
    using LockCall::LockCall;
    void on_answer(const InFlight &, const Reply &, Nanos) const override;
  };

  // On the connection at the side.
  struct SideExtend final : OfRecord {
    using OfRecord::OfRecord;
    bool is_for_primary() const override { return false; }
    bool is_redirected(const InFlight &, const Reply &, Nanos) const override { return false; }
    void on_answer(const InFlight &, const Reply &, Nanos) const override;
    void on_unknown_script(const InFlight &, Nanos) const override;
  };
  struct Wait final : LockCall {
    using LockCall::LockCall;
    bool is_for_primary() const override { return false; }
    void on_answer(const InFlight &, const Reply &, Nanos) const override;
  };

  explicit Calls(LockClient &client);

  const Acquire acquire;
  const Extend extend;
  const Upgrading upgrade;
  const RollBack roll_back;
  const CleanUp release, cancel;
  const Track track;
  const FindKey find_key;
  const Ask ask;
  const InspectKey inspect_key;
  const UndoAttach undo_attach;
  const ServeQueue serve_queue;
  const Announce announce;
  const AskName ask_name;
  const Health health;
  const Delegated delegated;
  const Asking asking;
  const SideExtend side_extend;
  const Wait wait;
};

}  // namespace redlatch::lock
