// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Redirects: the slots of a cluster that are on their way to another node. Commands about such a
// slot are held back: its locks are as if the connection were down. When none is under way, the
// locks move.
//
// The keys of a lock move one by one. A script with a key that is not there is refused
// (docs/wire.md, "Cluster"), so for that time a lock can be kept, by an extension that names the
// lock key alone, but neither acquired nor released.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>

#include "lock/call.h"
#include "lock/placement.h"

namespace redlatch::lock {

class Redirects {
 public:
  // Without it no server redirects. It outlives the client.
  void place_by(Placement &placement) { placement_ = &placement; }

  // True if commands about `lock` can be sent.
  bool is_up(const LockState &lock) const;
  // True if another node serves the slot of `lock`, or will.
  bool is_moving(const LockState &lock) const {
    return !moving_.empty() && moving_.contains(lock.slot());
  }
  // True if `lock` is at `server`, and of one of `slots`; null: of any that does not move.
  bool is_to_resume(const LockState &lock, const Server &server, const Moves *slots) const {
    return lock.server == &server &&
           (slots != nullptr ? slots->contains(lock.slot()) : !is_moving(lock));
  }
  // Nothing about the slot is sent any more.
  void hold_back(uint16_t slot) { moving_.insert(slot); }
  // Commands about the slot may be sent again.
  void reopen(uint16_t slot) { moving_.erase(slot); }
  const std::set<uint16_t> &held_back() const { return moving_; }

  // True if the request to list locks continues at another server.
  bool continues_list(const std::shared_ptr<Request> &request) {
    return placement_ != nullptr && placement_->continues_list(request);
  }
  // `server` has refused a command about a slot; of a lock, the slot is held back after kMoved.
  void note(const Server &server, const protocol::Redirect &redirect, const LockState *lock);
  // Follows a redirect. @return false: `reply` is a refusal as any other. Without memory the answer
  // counts as lost, and std::bad_alloc is thrown.
  bool take(const Call &call, const Reply &reply, Nanos now);

  // ---- commands that another node is asked, behind ASKING
  // True if `call` is of a lock at another server.
  bool is_delegated(const Call &call) const {
    return call.kind == &delegated_ || call.kind == &asking_;
  }
  // Sends `server` ASKING and `extension`, an extension of `record` at another server. An ASK
  // is never remembered: the next command about the lock goes to its owner first. @return false:
  // there was no memory, and the connection is dropped.
  bool send(Server &server, const std::shared_ptr<DelegatedCommand> &delegated, TokenRecord &record,
            protocol::Command &extension, Nanos now);

 private:
  // Another server is asked.
  struct ToAnother : session::CallKind {
    explicit ToAnother(Redirects &of) : redirects(of) {}
    std::optional<uint16_t> slot(const Call &call) const override {
      return call.about<DelegatedCommand>().lock->slot();
    }
    Redirects &redirects;
  };
  struct Delegated final : ToAnother {
    using ToAnother::ToAnother;
    void on_answer(const Call &, const Reply &, Nanos) const override;
    void on_lost(const Call &, Nanos) const override;
  };
  // It prepares Delegated.
  struct Asking final : ToAnother {
    using ToAnother::ToAnother;
    void on_answer(const Call &, const Reply &, Nanos) const override;
  };

  bool follow(const Call &call, const Reply &reply, Nanos now);
  bool postpone(const Call &call, Nanos now);
  void on_delegated_over(DelegatedCommand &delegated, const Reply *reply, Nanos now);

  Placement *placement_ = nullptr;
  const Delegated delegated_{*this};
  const Asking asking_{*this};
  std::set<uint16_t> moving_;
};

}  // namespace redlatch::lock
