// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Health: asks a server for its health, by request or in the background. Nothing depends on it, and
// nothing waits for it but the request that asked.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/reply.h"
#include "base/settings.h"
#include "protocol/health.h"
#include "protocol/lock_trial.h"
#include "session/call.h"
#include "session/channel.h"
#include "session/session.h"

namespace redlatch::operate {

class Health {
 public:
  class Owner {
   public:
    // `trial`: nullptr without a request.
    virtual void on_health(size_t node, const protocol::HealthFacts &facts,
                           const protocol::LockTrial *trial) = 0;
    // The request is answered, or its connection has ended before.
    virtual void on_health_answered(const std::shared_ptr<void> &request) = 0;
    virtual void on_health_lost(const std::shared_ptr<void> &request) = 0;

   protected:
    ~Owner() = default;
  };

  // All outlive it. The owner knows the server by the number `node`.
  Health(const Settings &settings, session::Session &session, const session::Channel &channel,
         size_t node, Owner &owner);

  // Checks the health at `due`, in the background; kNever: no check. A proxy may close a connection
  // for a command that it does not know: after two such ends there is no further check.
  void check_at(Nanos due);
  Nanos due() const { return check_at_; }
  void on_disconnected() { check_at_ = kNever; }
  void check(const protocol::ServerFeatures &features, Nanos now);
  // `request` waits for the answers. `rid`, and the number before it, are no other token's. Throws
  // std::bad_alloc: then no answer is given to `request`.
  void ask(std::shared_ptr<void> request, uint64_t rid, const protocol::ServerFeatures &features,
           Nanos now);
  // The push comes before the last replies of the trial, unless messages have a connection of their
  // own. @return whether the push is for a trial.
  bool note_push(uint64_t rid);

 private:
  // One pass of questions.
  struct Checkup {
    protocol::HealthCheck check;
    std::optional<protocol::LockTrial> trial;
    std::shared_ptr<void> request;  // nullptr: in the background, without a trial
    bool is_lost = false;

    bool is_over() const { return check.is_over() && (!trial || trial->is_over()); }
  };
  struct Question final : session::CallKind {
    explicit Question(Health &of) : health(of) {}
    void on_answer(const session::Call &, const Reply &, Nanos) const override;
    void on_lost(const session::Call &, Nanos) const override;
    bool is_for_primary() const override { return false; }
    Health &health;
  };

  void send(const std::shared_ptr<Checkup> &checkup, const protocol::ServerFeatures &features,
            Nanos now);

  const Settings &settings_;
  session::Session &session_;
  const session::Channel &channel_;
  const size_t node_;
  Owner &owner_;
  const Question question_{*this};
  Nanos check_at_ = kNever;
  int lost_count_ = 0;  // of questions in the background
};

}  // namespace redlatch::operate
