// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// GroupRules: the rules for a primary with replicas: those of one server for whichever is the
// primary, and those of failovers. Exclusion is not promised to a lease that a failover loses, that
// is granted or prolonged by a server that is no longer the primary, or that comes to a server
// whose clock differs.
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

class GroupRules : public Checker, private RuleParts {
 public:
  GroupRules(const RuleParts &parts, const std::vector<std::unique_ptr<Server>> &servers);

  // Before the first command of `heir` as the primary.
  void promoted(size_t heir);
  // A replica has these effects, or everything that its primary has.
  void took(size_t replica, size_t primary, const Effects &effects);
  void copied(size_t replica, size_t primary);
  // The clients, which exist later than the rules.
  void join(const Context &context) { context_ = &context; }
  size_t primary() const { return primary_; }

  // Checker
  void sent(size_t node, int client, Argv argv) override;
  void granted(const lock::Request &request, Nanos last_reply_at, Beliefs::Holder &holder) override;
  void succeeded(const lock::Request &request) override { rules_.succeeded(request); }
  void failed(int client, const lock::Request &request) override;
  void told(const std::string &token) override { rules_.told(token); }
  void given_up(const std::string &token) override;
  bool was_granted(const std::string &token) const override { return rules_.was_granted(token); }
  bool is_fence_apart(const std::string &token) const override { return apart_.contains(token); }
  void forgets(size_t, Fault) override {}
  void stepped(size_t, Nanos by) override { rules_.stepped(0, by); }
  std::vector<std::pair<std::string, std::string>> waiters() const override {
    return rules_.waiters();
  }
  void watch(const Context &context) override;
  void check_leftovers(Nanos gone_for) override { rules_.check_leftovers(gone_for); }

  // The sum of the steps back that the failovers were for clients.
  Nanos stepped_back() const { return stepped_back_; }

 private:
  // Tells Rules what the primary does, and notes the leases of a server that is not.
  struct Node : Witness {
    Node(GroupRules &all_, size_t index_) : all(all_), index(index_) {}
    bool is_primary() const { return all.primary_ == index; }
    void before(Argv argv, int64_t now_us) override;
    void after(Argv argv, const Value &reply, int64_t now_us) override;
    void changed(std::string_view key) override;
    void queued(std::string_view key, std::string_view member, double score) override;
    void dequeued(std::string_view key, std::string_view member, double score) override;

    GroupRules &all;
    const size_t index;
    bool is_checked = false;                      // the command that runs
    std::set<std::string> changed_keys;           // by a command of a server that is no primary
    std::map<std::string, Rules::Leases> leases;  // of each lock, as the replica last had them
  };

  void excuse_at(size_t primary, int64_t end_ms, const std::string &lock, const std::string &token,
                 int64_t last_ms);
  void note_kept(size_t replica, size_t primary, const std::string &lock);
  bool has_kept(const std::string &token, size_t replica) const;
  bool is_settled(int client, Nanos since) const;
  void check_known(const std::string &name, const Beliefs::Holder &holder);
  void check_confirmed(const lock::Request &request, const Beliefs::Holder &holder);
  void note_released(std::string_view token);
  void check_freed();

  const std::vector<std::unique_ptr<Server>> &servers_;
  Rules rules_;
  std::vector<std::unique_ptr<Node>> nodes_;
  size_t primary_ = 0;
  const Context *context_ = nullptr;
  Nanos stepped_back_ = 0;
  struct Kept {
    Nanos at;      // when a replica last took the lease from a primary
    bool is_gone;  // .. and has taken its end since
  };
  // By token, then by primary and replica.
  std::map<std::string, std::map<std::pair<size_t, size_t>, Kept>, std::less<>> kept_;
  // A lease that its caller did not get, because too few replicas confirmed it.
  struct Refused {
    std::string lock, token;
    int client;
    uint64_t life;  // of its process
    Nanos at;
  };
  std::vector<Refused> refused_;
  std::set<std::string, std::less<>> apart_;     // tokens granted by a server that was no primary
  std::set<std::string, std::less<>> held_;      // tokens of which a caller has had the lease
  std::set<std::string, std::less<>> renewed_;   // of them, the last lease of which is renewed
  std::set<std::string, std::less<>> ticketed_;  // members that have asked with their ticket
};

}  // namespace redlatch::sim
