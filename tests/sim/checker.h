// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Checker: checks the promises for locks on one server (Rules), or on most of several
// (QuorumRules). The parts of a run report their actions to it. Nodes are numbered from 0.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "beliefs.h"
#include "plan.h"
#include "schedule.h"
#include "stats.h"
#include "value.h"
#include "verdict.h"

namespace redlatch::sim {

struct Context;

// What rules look at, and report to.
struct RuleParts {
  const Plan &plan_;
  Schedule &schedule_;
  Stats &stats_;
  Verdict &verdict_;
  Beliefs &beliefs_;
};

class Checker {
 public:
  virtual ~Checker() = default;

  // Actions of clients.
  // A client sends a command to a node.
  virtual void sent(size_t node, int client, Argv argv) = 0;
  // A client learns that it holds a lock; its last reply came at `last_reply_at`. The checker
  // completes `holder`, its belief from now on.
  virtual void granted(const lock::Request &request, Nanos last_reply_at,
                       Beliefs::Holder &holder) = 0;
  // The request of a flight, which began at `began`, has ended with a value.
  virtual void landed(const lock::Request &, Nanos /* began */) {}
  // A request of another kind has succeeded.
  virtual void succeeded(const lock::Request &request) = 0;
  // A request of any kind has failed.
  virtual void failed(int, const lock::Request &) {}
  // The client of this token gets a message that grants it a lock.
  virtual void told(const std::string &) {}
  // The lease of this token has ended at its client.
  virtual void given_up(const std::string &token) = 0;
  // A client has done something.
  virtual void check_client(int) {}
  // The client of a channel uses another one from now on.
  virtual void changed_channel(std::string_view /* old */, std::string_view /* other */) {}
  // A client of this channel has learnt that `node` has restarted.
  virtual void learnt_of_restart(size_t, std::string_view) {}
  // True if exclusion is not promised to this holder. Asked when another one believes as well.
  virtual bool is_let_off(const std::string &, const Beliefs::Holder &) const { return false; }
  // True if the fence of this token does not count for others: a server that is no primary made it.
  virtual bool is_fence_apart(const std::string &) const { return false; }
  // True if the one server has the lock for this token.
  virtual bool is_held_by(std::string_view, const std::string &) const { return false; }
  // True if a server ever granted this token a lock.
  virtual bool was_granted(const std::string &) const { return true; }

  // Faults. All but stepped() are called before they happen.
  // A node loses all keys, by this fault.
  virtual void forgets(size_t node, Fault why) = 0;
  // A node loses the key of one lock.
  virtual void evicts(size_t, const std::string &) {}
  // All nodes lose the key of one lock at once.
  virtual void is_taken(const std::string &) {}
  // The locks that are held at a node; the queue members of all locks.
  virtual std::vector<std::string> held_at(size_t) const { return {}; }
  virtual std::vector<std::pair<std::string, std::string>> waiters() const { return {}; }
  // The clock of a node was stepped.
  virtual void stepped(size_t node, Nanos by) = 0;

  // Called twice a second; called when all clients have been gone for `gone_for`.
  virtual void watch(const Context &context) = 0;
  virtual void check_leftovers(Nanos gone_for) = 0;
};

}  // namespace redlatch::sim
