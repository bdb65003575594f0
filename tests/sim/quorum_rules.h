// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// QuorumRules: the rules for locks on several nodes, beside those of Rules for each node. Written
// from docs/redlock.md. It reads the nodes' keys, and when they end in true time.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "beliefs.h"
#include "checker.h"
#include "plan.h"
#include "rules.h"
#include "schedule.h"
#include "server.h"
#include "verdict.h"

namespace redlatch::sim {

class QuorumRules : public Checker, private RuleParts {
 public:
  // Judges all servers together and, if the plan says so, also each by the rules of one server.
  QuorumRules(const RuleParts &parts, const std::vector<std::unique_ptr<Server>> &servers);

  // Checker
  void sent(size_t node, int client, Argv argv) override;
  void granted(const lock::Request &request, Nanos last_reply_at, Beliefs::Holder &holder) override;
  void succeeded(const lock::Request &request) override;
  void told(const std::string &token) override;
  void given_up(const std::string &token) override;
  void check_client(int client) override;
  // With a guard the client's votes on that node no longer count.
  void changed_channel(std::string_view old, std::string_view other) override;
  void learnt_of_restart(size_t node, std::string_view channel) override;
  // True if the holder has no majority without votes that were lost in an unpromised way.
  bool is_let_off(const std::string &name, const Beliefs::Holder &holder) const override;
  // After a restart with a guard, the node must not vote while its lost keys would have existed.
  void forgets(size_t node, Fault why) override;
  void evicts(size_t node, const std::string &lock) override { forget(node, false, lock); }
  void is_taken(const std::string &lock) override { taken_[lock] = schedule_.now(); }
  std::vector<std::string> held_at(size_t node) const override;
  void stepped(size_t node, Nanos by) override;
  void watch(const Context &context) override;
  void check_leftovers(Nanos gone_for) override;

 private:
  // A vote that a node has given a client, also after the node has forgotten it.
  struct Vote {
    std::string token;
    Nanos since = 0;            // when the token got it
    Nanos end = 0;              // when its key ends, if the node does not lose it
    bool is_forgotten = false;  // the node lost it in a promised way: the guard covers it
    Nanos believed_until = 0;   // the node lost it in an unpromised way: the former end
  };
  struct Holding {
    Nanos since = 0;       // when the key last got another holder, or none
    Nanos free_since = 0;  // since when no client has had it for longer than a moment
  };
  struct Node : Witness {
    Node(QuorumRules &all_, size_t index_, Server &server_)
        : all(all_),
          index(index_),
          server(server_),
          rules(all_, server_),
          is_checked(all_.plan_.checks_each_node) {}

    void after(Argv argv, const Value &reply, int64_t now_us) override;

    QuorumRules &all;
    const size_t index;
    Server &server;
    Rules rules;
    const bool is_checked;                                        // by the rules of one server
    std::map<std::string, std::string, std::less<>> holders;      // lock key to token
    std::map<std::string, std::pair<std::string, Nanos>> strays;  // to unbelieved token, and when
    std::map<std::string, Holding> holdings;                      // by lock key
    // By client that knows of a restart: the end of the guard.
    std::map<std::string, Nanos, std::less<>> guarded_until;
    Nanos stepped_at = -kNever / 2;  // last step forward
    Nanos stepped_back = 0;          // sum of the steps back
  };
  using Votes = std::array<Vote, kMaxNodes>;

  void check_release(const lock::Lease &lease);
  void check_validity(const std::string &name, const Beliefs::Holder &holder);
  void check_losses(const Context &context);
  void check_idle(const Context &context);
  // Rule, from `since` on: a holder asks for the votes that it lacks and no other client has.
  void check_missing(const Context &context, Nanos since);
  void check_missing(const std::string &name, const Beliefs::Holder &holder, size_t node,
                     Nanos since);
  // Rule, from `since` on: a lock that was removed from all nodes is lost, and not rebuilt.
  void check_taken(const std::string &name, const Beliefs::Holder &holder, Nanos since);
  // Rule of the calm: votes that no believer needs are given back.
  void check_strays(Nanos calm_since);
  void note(Node &node, std::string_view lock, Argv argv);
  void note_holding(Node &node, std::string_view lock, bool was_held);
  static void lose(Vote &vote);
  // A node loses the votes of `lock`, or of all locks; the guard covers it if `is_promised`.
  void forget(size_t node, bool is_promised, std::string_view lock = {});
  // When a majority of the votes has ended; with or without those lost in an unpromised way.
  Nanos end_of(const std::string &name, const std::string &token, bool with_unpromised) const;
  std::string id_of(std::string_view token, std::string_view lock) const;
  std::string_view client_of(std::string_view cid) const;

  std::vector<std::unique_ptr<Node>> nodes_;
  // By client and lock, because the rounds of one acquire have tokens of their own.
  std::map<std::string, Votes, std::less<>> votes_;
  std::map<std::string, Nanos, std::less<>> renewed_;  // tokens of renewed leases: when granted
  std::map<std::string, Nanos, std::less<>> taken_;    // lock keys: when removed everywhere
  std::map<std::string, Nanos, std::less<>> left_;     // tokens of leases: when they ended
  std::map<std::string, Nanos> idle_;  // names of locks with waiters: when the last holder ended
  std::map<std::string, std::string, std::less<>> first_cids_;  // of clients, by a later one
};

}  // namespace redlatch::sim
