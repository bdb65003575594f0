// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Confirmations: replicas that confirm. A lease that wants them is held from its grant on, and
// renewed as any other; its caller gets it when enough replicas have it. WAIT counts only what its
// own connection has written, and blocks what is behind it: so it has a connection of its own, at
// the side, where each lease is extended in front of it. Replication decides what is sent.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "lock/call.h"
#include "lock/lock_state.h"
#include "lock/replication.h"
#include "lock/service.h"
#include "session/session.h"

namespace redlatch::lock {

class Confirmations {
 public:
  class Owner {
   public:
    virtual void write_extend(protocol::Command &out, const TokenRecord &record, Nanos lease,
                              protocol::EvalMode eval, const protocol::HolderInfo *info) const = 0;
    virtual void note_time(Server &server, Nanos sent_at, Nanos now, int64_t server_ms) = 0;
    // prolong(): the server has extended the lease. lose(): the server does not have the lease.
    // on_record_due(): an answer came after the end of the lease.
    virtual void prolong(TokenRecord &record, Nanos sent_at, Nanos lease, Nanos now) = 0;
    virtual void lose(TokenRecord &record, Loss loss, bool is_gone, Nanos now) = 0;
    virtual void on_record_due(TokenRecord &record, Nanos now) = 0;
    // The server has refused a command about the slot of `record`, which is served elsewhere, or
    // nowhere now.
    virtual void on_redirected(const TokenRecord &record, const protocol::Redirect &redirect) = 0;
    // The caller that waits for the replicas gets the lease, or the reason why it does not.
    virtual void on_confirmed(TokenRecord &record) = 0;
    virtual void fail_confirmation(TokenRecord &record, Status status, std::string_view message,
                                   Nanos now) = 0;

   protected:
    ~Owner() = default;
  };

  // All outlive it. `commands`: the connection to the same server, for all other commands.
  Confirmations(const Settings &settings, Output &output, Entropy &entropy,
                session::Session &commands, size_t node, Owner &owner)
      : settings_(settings),
        output_(output),
        commands_(commands),
        node_(node),
        owner_(owner),
        side_(settings, output, entropy, node, session::Session::Connection::kWait) {}

  // ---- leases, which are held
  // @return whether `caller` waits for replicas, and gets the lease then.
  [[nodiscard]] bool start(TokenRecord &record, const std::shared_ptr<Request> &caller);
  // The same of a reader that has become the writer.
  [[nodiscard]] bool start_upgrade(TokenRecord &record);
  // A lease that its caller has, after a renewal.
  void repeat(TokenRecord &record);
  // @return the caller that waited for the replicas, if it has not got the lease yet.
  std::shared_ptr<Request> end(TokenRecord &record);
  // The lock of `record` was at the server of `from`.
  void take_over(Confirmations &from, TokenRecord &record);

  // ---- the connection at the side
  [[nodiscard]] bool begin_connect(Nanos now);
  void on_connected(Nanos now);
  void on_connect_failed(const Outcome &why, Nanos now);
  void on_disconnected(Nanos now) noexcept;
  void on_reply(const Reply &reply, Nanos now) {
    if (side_.is_up()) side_.on_reply(reply, now);
  }
  // The other connection has ended: the next one may be to another server.
  void drop() noexcept;
  Nanos due() const;
  void on_due(Nanos now);
  void add_slots(std::set<uint16_t> &slots) const { side_.add_slots(slots); }

  // The wait of the caller, or of an upgrade, has ended.
  static Outcome why_late(const TokenRecord &record) noexcept;

 private:
  struct Kind : session::CallKind {
    explicit Kind(Confirmations &of) : confirmations(of) {}
    bool is_for_primary() const override { return false; }
    Confirmations &confirmations;
  };
  struct Extend final : Kind {
    using Kind::Kind;
    std::optional<uint16_t> slot(const Call &call) const override {
      return record_of(call).lock->slot();
    }
    void on_answer(const Call &call, const Reply &reply, Nanos now) const override {
      confirmations.on_extended(call, reply, now);
    }
    void on_unknown_script(const Call &, Nanos) const override;
  };
  struct Wait final : Kind {
    using Kind::Kind;
    void on_answer(const Call &, const Reply &, Nanos) const override;
  };

  void want(TokenRecord &record);
  void send_batch(Nanos now);
  void on_extended(const Call &call, const Reply &reply, Nanos now);
  bool is_put_off(TokenRecord &record, const Reply &reply, Nanos now);
  void on_counted(int64_t count, Nanos now);
  void on_wait_refused(const Reply &reply, Nanos now);
  void refuse(TokenRecord &record, Status status, const std::string &why, Nanos now);
  void refuse_batch(Status status, const std::string &why, Nanos now);
  void refuse_all(Status status, const std::string &why, Nanos now);

  const Settings &settings_;
  Output &output_;
  session::Session &commands_;
  const size_t node_;
  Owner &owner_;
  const Extend extend_{*this};
  const Wait wait_{*this};
  session::Session side_;
  Checked<Replication> replication_;
  bool is_outdated_ = false;     // side_ is, or will be, to a server that may be another one
  bool is_text_wanted_ = false;  // the server did not know the digest of a script
  Nanos until_ = 0;              // while side_ is up: when an answer is late, or it is unused
};

}  // namespace redlatch::lock
