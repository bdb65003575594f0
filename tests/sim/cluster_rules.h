// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// ClusterRules: the rules for locks on a cluster: those of one server for each lock, wherever its
// slot is, and those of slots that move. Exclusion is not promised to a lease that a failover
// loses.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rules.h"

namespace redlatch::sim {

class ClusterRules : public Checker, private RuleParts {
 public:
  ClusterRules(const RuleParts &parts, const std::vector<std::unique_ptr<Server>> &servers);

  // Those of the locks.
  std::vector<uint16_t> slots() const;
  // The slot is at `server`, and all its keys; or some keys are at `other`.
  void moved(uint16_t slot, size_t server, const size_t *other);
  // A key has moved.
  void key_moved(uint16_t slot, size_t from, size_t to);
  // Before the first command of `heir` as a primary.
  void promoted(size_t old, size_t heir);
  // The clients, which exist later than the rules.
  void join(const Context &context) { context_ = &context; }

  // Checker
  void sent(size_t node, int client, Argv argv) override;
  void granted(const lock::Request &request, Nanos last_reply_at, Beliefs::Holder &holder) override;
  void succeeded(const lock::Request &request) override;
  void told(const std::string &token) override;
  void given_up(const std::string &token) override;
  bool is_let_off(const std::string &name, const Beliefs::Holder &holder) const override;
  bool was_granted(const std::string &token) const override;
  void forgets(size_t, Fault) override {}
  void stepped(size_t, Nanos) override {}
  std::vector<std::pair<std::string, std::string>> waiters() const override;
  void watch(const Context &context) override;
  void check_leftovers(Nanos gone_for) override;

 private:
  // One lock: its rules, and where it is.
  struct Place {
    Place(std::string key_, const RuleParts &parts, Server &first)
        : key(std::move(key_)), rules(parts, first) {}

    const std::string key;  // of the lock
    Rules rules;
    size_t server = 0;
    Nanos moved_at = 0;                       // since when it is there
    Nanos moved_before_at = 0;                // since when it was at the server before
    size_t other = SIZE_MAX;                  // has some of its keys
    std::map<double, std::set<int>> tickets;  // to the clients whose waiters were given them
    std::map<std::string, Nanos, std::less<>> strays;  // members without a channel: since when
  };
  // Tells the rules of a lock what a server does with it.
  struct Node : Witness {
    Node(ClusterRules &all_, size_t index_) : all(all_), index(index_) {}
    void before(Argv argv, int64_t now_us) override;
    void after(Argv argv, const Value &reply, int64_t now_us) override;
    void changed(std::string_view key) override;
    void queued(std::string_view key, std::string_view member, double score) override;
    void dequeued(std::string_view key, std::string_view member, double score) override;

    ClusterRules &all;
    const size_t index;
    Place *running = nullptr;  // the lock of the command that runs
    bool is_checked = false;   // by the rules of one server
  };
  // A waiter, as its client has asked for it.
  struct Waiter {
    int client;
    uint64_t life;  // of its process
    bool has_ticket = false;
    Nanos cancelled_at = kNever;  // first
  };

  Place *place_of(std::string_view key);
  Place &place_of_name(const std::string &name);
  void excuse_at(int64_t end_ms, size_t place, const std::string &token, int64_t last_ms);
  void note_asked(int client, const Rules::Asking &asked, Place &place);
  void check_one_node(const Place &place);
  void check_strays(Place &place, const Context &context);
  bool is_alive(const Waiter &waiter) const;

  const std::vector<std::unique_ptr<Server>> &servers_;
  std::vector<std::unique_ptr<Place>> places_;
  std::map<uint16_t, size_t> place_numbers_;  // by slot
  std::vector<std::unique_ptr<Node>> nodes_;
  const Context *context_ = nullptr;
  std::map<std::string, Waiter, std::less<>> waiters_;  // by member
  std::set<std::string, std::less<>> held_;  // tokens of which a caller has had the lease
};

}  // namespace redlatch::sim
