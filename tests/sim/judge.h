// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Judge: what is promised of locks on one server (Rules), or on most of several (QuorumRules). The
// parts of a run report to it what they do. Nodes are numbered from 0.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "beliefs.h"
#include "plan.h"
#include "value.h"

namespace redlatch::sim {

struct Scene;

class Judge {
 public:
  virtual ~Judge() = default;

  // Clients.
  // A command leaves a client for a node.
  virtual void sent(size_t node, int client, Argv argv) = 0;
  // A client that has last heard of a server at `heard_at` learns that it holds; `holder`, which is
  // what it believes from now on, is to be completed.
  virtual void granted(const lock::Request &request, Nanos heard_at, Beliefs::Holder &holder) = 0;
  // A request of another kind has succeeded.
  virtual void succeeded(const lock::Request &request) = 0;
  // No client holds by this token any more.
  virtual void given_up(const std::string &token) = 0;
  // A client has done something.
  virtual void judge_client(int) {}
  // A client of this channel has learnt that `node` has restarted.
  virtual void learnt_of_restart(size_t, std::string_view) {}
  // Whether this holder is not promised to be alone, as it turns out when it is not.
  virtual bool is_let_off(const std::string &, const Beliefs::Holder &) const { return false; }
  // Whether a server ever gave this token a lock.
  virtual bool was_granted(const std::string &) const { return true; }

  // Faults, just before they happen.
  // All keys of a node go. `why`: how.
  virtual void forgets(size_t node, Fault why) = 0;
  // The key of one lock goes on one node; on every node at once.
  virtual void evicts(size_t, const std::string &) {}
  virtual void is_taken(const std::string &) {}
  // Locks that are held at a node; tokens in queues, with their lock.
  virtual std::vector<std::string> held_at(size_t) const { return {}; }
  virtual std::vector<std::pair<std::string, std::string>> waiters() const { return {}; }
  // The clock of a node was stepped.
  virtual void stepped(size_t node, Nanos by) = 0;

  // In the long run: twice a second, and when all clients are gone for `gone_for`.
  virtual void watch(const Scene &scene) = 0;
  virtual void judge_leftovers(Nanos gone_for) = 0;
};

}  // namespace redlatch::sim
