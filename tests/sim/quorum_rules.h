// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// QuorumRules: what must hold of locks on several nodes together, beside what Rules says of each.
// Written from docs/redlock.md: it sees what stands in the nodes' keys, and when that really ends.
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
#include "judge.h"
#include "plan.h"
#include "rules.h"
#include "schedule.h"
#include "server.h"
#include "verdict.h"

namespace redlatch::sim {

class QuorumRules : public Judge {
 public:
  // Judges all servers from now on: together and, if the plan says so, each by itself.
  QuorumRules(const Plan &plan, Schedule &schedule,
              const std::vector<std::unique_ptr<Server>> &servers, Tally &tally, Verdict &verdict,
              Beliefs &beliefs);

  // Judge
  void sent(size_t node, int client, Argv argv) override;
  void granted(const lock::Request &request, Nanos heard_at, Beliefs::Holder &holder) override;
  void succeeded(const lock::Request &request) override;
  void given_up(const std::string &token) override;
  void judge_client(int client) override;
  // With a guard the client's votes there count for nothing any more.
  void learnt_of_restart(size_t node, std::string_view channel) override;
  // Without the votes that were lost in a way against which nothing is promised it would not have a
  // majority.
  bool is_let_off(const std::string &name, const Beliefs::Holder &holder) const override;
  // With a guard it must have no vote after a restart while its keys would have been there.
  void forgets(size_t node, Fault why) override;
  void evicts(size_t node, const std::string &lock) override { forget(node, false, lock); }
  void is_taken(const std::string &lock) override { taken_[lock] = schedule_.now(); }
  std::vector<std::string> held_at(size_t node) const override;
  void stepped(size_t node, Nanos by) override;
  void watch(const Scene &scene) override;
  void judge_leftovers(Nanos gone_for) override;

 private:
  // What a node granted a client, whatever it thinks of it now.
  struct Vote {
    std::string token;
    Nanos since = 0;            // that token has it
    Nanos end = 0;              // when its key is gone, if nothing happens to the node
    bool is_forgotten = false;  // something did, against which there is a promise
    Nanos believed_until = 0;   // .. against which there is none: by who does not know it yet
  };
  struct Tenure {
    Nanos since = 0;       // it has its holder, or none
    Nanos free_since = 0;  // since then no client had it for longer than a moment
  };
  struct Node : Witness {
    Node(QuorumRules &all_, size_t index_, Server &server_)
        : all(all_),
          index(index_),
          server(server_),
          rules(all_.plan_, all_.schedule_, server_, all_.tally_, all_.verdict_, all_.beliefs_),
          is_judged(all_.plan_.judges_each_node) {}

    void after(Argv argv, const Value &reply, int64_t now_us) override;

    QuorumRules &all;
    const size_t index;
    Server &server;
    Rules rules;
    const bool is_judged;                                         // by itself
    std::map<std::string, std::string, std::less<>> holders;      // lock key to token
    std::map<std::string, std::pair<std::string, Nanos>> strays;  // .. and since when
    std::map<std::string, Tenure> tenures;                        // by lock key
    // By client: it knows of a restart.
    std::map<std::string, Nanos, std::less<>> guarded_until;
    Nanos stepped_at = -kNever / 2;  // forward
    Nanos stepped_back = 0;          // in sum
  };
  using Votes = std::array<Vote, kMaxNodes>;

  void judge_release(const lock::Lease &lease);
  void judge_validity(const std::string &name, const Beliefs::Holder &holder);
  void judge_losses(const Scene &scene);
  void judge_idle(const Scene &scene);
  // Votes that a holder has not, and no other client has, are asked for. Judged as from `since`.
  void judge_missing(const Scene &scene, Nanos since);
  void judge_missing(const std::string &name, const Beliefs::Holder &holder, size_t node,
                     Nanos since);
  // Nor is one that was taken away everywhere put together again.
  void judge_taken(const std::string &name, const Beliefs::Holder &holder, Nanos since);
  // Votes that nobody counts on do not stay. Once nothing fails any more.
  void judge_strays(Nanos calm_since);
  void note(Node &node, std::string_view lock, Argv argv);
  void note_tenure(Node &node, std::string_view lock, bool was_held);
  static void lose(Vote &vote);
  // Of `lock`, or of all.
  void forget(size_t node, bool is_promised, std::string_view lock = {});
  // When a majority of its votes has ended. Of all, or of those that count against others.
  Nanos end_of(const std::string &name, const std::string &token, bool with_unpromised) const;
  static std::string id_of(std::string_view token, std::string_view lock);

  const Plan &plan_;
  Schedule &schedule_;
  Tally &tally_;
  Verdict &verdict_;
  Beliefs &beliefs_;
  std::vector<std::unique_ptr<Node>> nodes_;
  // By client and lock: one client has one call for a lock, whose rounds have tokens of their own.
  std::map<std::string, Votes, std::less<>> votes_;
  std::map<std::string, Nanos, std::less<>> renewed_;  // tokens of leases, and when granted
  std::map<std::string, Nanos, std::less<>> taken_;    // lock keys, and when
  std::map<std::string, Nanos, std::less<>> left_;     // tokens of leases, and when given up
  std::map<std::string, Nanos> idle_;  // since when a lock that is waited for has had no holder
};

}  // namespace redlatch::sim
