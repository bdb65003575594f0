// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The calls of LockClient, one of each kind.
#pragma once

#include "lock/lock_client.h"

namespace redlatch::lock {

struct LockClient::Calls {
  // About the record of a token.
  struct OfRecord : Call {
    void ask_again(LockClient &client, const InFlight &in_flight, Nanos now) const override;
    const LockState *lock(const InFlight &in_flight) const override;
  };
  struct Acquire final : OfRecord {
    void on_answer(LockClient &, const InFlight &, const Reply &, Nanos) const override;
    void on_unknown_script(LockClient &, const InFlight &, Nanos) const override;
    void on_lost(LockClient &, const InFlight &, Nanos) const override;
    void on_not_done(LockClient &, const InFlight &, Nanos) const override;
  };
  struct Extend final : OfRecord {
    void on_answer(LockClient &, const InFlight &, const Reply &, Nanos) const override;
    void on_unknown_script(LockClient &, const InFlight &, Nanos) const override;
    void on_lost(LockClient &, const InFlight &, Nanos) const override;
    void on_not_done(LockClient &, const InFlight &, Nanos) const override;
    void extend_lock_key(LockClient &, const InFlight &, Nanos) const override;
    bool is_extension(const InFlight &) const override { return true; }
  };
  struct Upgrading final : OfRecord {
    void on_answer(LockClient &, const InFlight &, const Reply &, Nanos) const override;
    void on_unknown_script(LockClient &, const InFlight &, Nanos) const override;
    void on_lost(LockClient &, const InFlight &, Nanos) const override;
    void on_not_done(LockClient &, const InFlight &, Nanos) const override;
  };
  // Ends an upgrade.
  struct RollBack final : OfRecord {
    void on_answer(LockClient &, const InFlight &, const Reply &, Nanos) const override;
    void on_unknown_script(LockClient &, const InFlight &, Nanos) const override;
    void on_lost(LockClient &, const InFlight &, Nanos) const override;
    void on_not_done(LockClient &, const InFlight &, Nanos) const override;
  };
  // RELEASE or CANCEL.
  struct CleanUp final : OfRecord {
    void on_answer(LockClient &, const InFlight &, const Reply &, Nanos) const override;
    void on_unknown_script(LockClient &, const InFlight &, Nanos) const override;
    void on_lost(LockClient &, const InFlight &, Nanos) const override;
    void on_not_done(LockClient &, const InFlight &, Nanos) const override;
    bool on_postponed(LockClient &, const InFlight &, Nanos, Nanos) const override;
  };
  // Prepares FindKey.
  struct Track final : OfRecord {
    void on_answer(LockClient &, const InFlight &, const Reply &, Nanos) const override;
  };
  // Is the key that is tracked from now on still there?
  struct FindKey final : OfRecord {
    void on_answer(LockClient &, const InFlight &, const Reply &, Nanos) const override;
  };

  // About a request without a record.
  struct OfRequest : Call {
    const LockState *lock(const InFlight &in_flight) const override;
    Request *request(const InFlight &in_flight) const override;
  };
  struct Ask final : OfRequest {
    void on_answer(LockClient &, const InFlight &, const Reply &, Nanos) const override;
    void on_unknown_script(LockClient &, const InFlight &, Nanos) const override;
    void on_lost(LockClient &, const InFlight &, Nanos) const override;
    void on_not_done(LockClient &, const InFlight &, Nanos) const override;
    bool on_postponed(LockClient &, const InFlight &, Nanos, Nanos) const override;
    void ask_again(LockClient &, const InFlight &, Nanos) const override;
    void extend_lock_key(LockClient &, const InFlight &, Nanos) const override;
    bool is_extension(const InFlight &in_flight) const override;
    bool undoes_attach(const InFlight &in_flight) const override;
  };
  // Looks at a key that a listing has found.
  struct InspectKey final : OfRequest {
    void on_answer(LockClient &, const InFlight &, const Reply &, Nanos) const override;
  };
  // If no answer comes, the lease ends with its ttl.
  struct UndoAttach final : OfRequest {
    void on_answer(LockClient &, const InFlight &, const Reply &, Nanos) const override {}
    void on_unknown_script(LockClient &, const InFlight &, Nanos) const override;
    bool undoes_attach(const InFlight &) const override { return true; }
  };

  struct ServeQueue final : Call {
    void on_answer(LockClient &, const InFlight &, const Reply &, Nanos) const override;
    const LockState *lock(const InFlight &in_flight) const override;
  };
  struct Announce final : Call {
    void on_answer(LockClient &, const InFlight &, const Reply &, Nanos) const override;
  };
  struct AskName final : Call {
    void on_answer(LockClient &, const InFlight &, const Reply &, Nanos) const override;
    void on_lost(LockClient &, const InFlight &, Nanos) const override;
    const LockState *lock(const InFlight &in_flight) const override;
  };
  struct Health final : Call {
    void on_answer(LockClient &, const InFlight &, const Reply &, Nanos) const override;
    void on_lost(LockClient &, const InFlight &, Nanos) const override;
  };

  // For the client of another node.
  struct Delegated final : Call {
    void on_answer(LockClient &, const InFlight &, const Reply &, Nanos) const override;
    void on_lost(LockClient &, const InFlight &, Nanos) const override;
  };
  // Prepares Delegated.
  struct Asking final : Call {
    void on_answer(LockClient &, const InFlight &, const Reply &, Nanos) const override;
  };

  // On the connection at the side.
  struct SideExtend final : OfRecord {
    void on_answer(LockClient &, const InFlight &, const Reply &, Nanos) const override;
    void on_unknown_script(LockClient &, const InFlight &, Nanos) const override;
  };
  struct Wait final : Call {
    void on_answer(LockClient &, const InFlight &, const Reply &, Nanos) const override;
  };

  static const Acquire acquire;
  static const Extend extend;
  static const Upgrading upgrade;
  static const RollBack roll_back;
  static const CleanUp release, cancel;
  static const Track track;
  static const FindKey find_key;
  static const Ask ask;
  static const InspectKey inspect_key;
  static const UndoAttach undo_attach;
  static const ServeQueue serve_queue;
  static const Announce announce;
  static const AskName ask_name;
  static const Health health;
  static const Delegated delegated;
  static const Asking asking;
  static const SideExtend side_extend;
  static const Wait wait;

  static bool is_cleanup(const InFlight &in_flight) {
    return in_flight.call == &release || in_flight.call == &cancel;
  }
};

}  // namespace redlatch::lock
