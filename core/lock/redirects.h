// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Redirects: the slots of a cluster that another node serves, or will. Commands about such a slot
// are held back. When none is under way, the LockClient of that node takes the locks over. Until
// then they are as if the connection were down.
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
#include "lock/service.h"

namespace redlatch::lock {

class Redirects {
 public:
  // `output` outlives it.
  explicit Redirects(Output &output) : output_(output) {}

  // True if commands about `lock` can be sent.
  bool is_up(const LockState &lock) const;
  // True if another node serves the slot of `lock`, or will.
  bool is_moving(const LockState &lock) const {
    return !moving_.empty() && moving_.contains(lock.slot());
  }
  // True if `lock` is at `server`, and of `slot`; nullopt: of any that does not move.
  bool is_to_resume(const LockState &lock, const Server &server,
                    std::optional<uint16_t> slot) const {
    return lock.server == &server && (slot ? lock.slot() == *slot : !is_moving(lock));
  }
  // Nothing about the slot is sent any more. @return false: it was held back already.
  bool hold_back(uint16_t slot) { return moving_.insert(slot).second; }
  // Commands about the slot may be sent again.
  void reopen(uint16_t slot) { moving_.erase(slot); }
  const std::set<uint16_t> &held_back() const { return moving_; }

  // Follows a redirect. @return false: `reply` is a refusal as any other. Without memory the answer
  // counts as lost, and std::bad_alloc is thrown.
  bool take(const Call &call, const Reply &reply, Nanos now);

  // ---- commands that another node is asked, behind ASKING
  // Sends `server` ASKING and `extension`, an extension of `record` at another server. An ASK
  // is never remembered: the next command about the lock goes to its owner first. @return false:
  // there was no memory, and the connection is dropped.
  bool send(Server &server, const std::shared_ptr<DelegatedCommand> &delegated, TokenRecord &record,
            protocol::Command &extension, Nanos now);

 private:
  // It was asked for by the client of another node.
  struct Delegated final : session::CallKind {
    void on_answer(const Call &, const Reply &, Nanos) const override;
    void on_lost(const Call &, Nanos) const override;
  };
  // It prepares Delegated.
  struct Asking final : session::CallKind {
    void on_answer(const Call &, const Reply &, Nanos) const override;
  };

  bool follow(const Call &call, const Reply &reply, Nanos now);
  bool postpone(const Call &call, Nanos now);
  void on_delegated_over(DelegatedCommand &delegated, const Reply *reply, Nanos now);

  Output &output_;
  const Delegated delegated_;
  const Asking asking_;
  std::set<uint16_t> moving_;
};

}  // namespace redlatch::lock
