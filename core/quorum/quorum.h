// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Quorum: a lock on most of several independent servers, the nodes (Redlock). Like the engine an
// object without lock, thread, socket or clock; called by one thread at a time.
//
// It is a user of one engine per node, and has no lock operation of its own: a vote is a lease of
// that node's engine, which renews and releases it, cleans up behind lost answers and says when it
// is lost. What is added: which nodes may vote, how many votes are enough, and where to wait.
//
// Engines report through Output in the middle of their work. So a report only marks what it is
// about (a Matter), and settle() looks at it as a whole before the call into the quorum returns.
//
// start() throws before anything was started.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "base/reply.h"
#include "base/settings.h"
#include "base/status.h"
#include "lock/engine.h"
#include "lock/service.h"
#include "lock/timer_queue.h"
#include "quorum/matters.h"
#include "timing/backoff.h"
#include "timing/quorum.h"

namespace redlatch::quorum {

class Quorum final : public lock::LockService, private lock::Output {
 public:
  // `random` makes the token's constant part, the same on all nodes. Settings and output outlive
  // the quorum.
  Quorum(std::span<const Settings> nodes, const QuorumSettings &settings,
         std::span<const uint8_t, 16> random, uint64_t seed, lock::Output &output);
  ~Quorum() override;

  const std::string &channel() const override { return nodes_.front()->engine.channel(); }
  bool needs_identity() const override { return true; }

  // Requests: kConnect, kAcquire, kRelease, kExtend, kDetach.
  void start(const std::shared_ptr<lock::Request> &request, Nanos now) override;
  Status cancel(lock::Request &request, Nanos now) override;
  void abandon(lock::Lease &lease, Nanos now) override;
  void shut_down(Nanos now) override;
  void give_up() override;
  // A node that is not connected is not waited for.
  size_t drained_count() const override;

  [[nodiscard]] bool begin_connect(size_t node, Nanos now) override;
  void on_connected(size_t node, const ServerFacts &facts, Nanos now) override;
  void on_connect_failed(size_t node, const Outcome &why, Nanos now) override;
  void on_disconnected(size_t node, Nanos now) noexcept override;
  void on_reply(size_t node, const Reply &reply, Nanos now) override;
  void on_push(size_t node, std::string_view message, Nanos now) override;
  void on_invalidated(size_t node, std::string_view key, Nanos now) override;
  void on_all_invalidated(size_t node, Nanos now) override;

  void on_timer(Nanos now) override;
  Nanos next_due() const override;

  size_t in_flight_count(size_t node) const override {
    return nodes_[node]->engine.in_flight_count(node);
  }
  bool expects_push() const override;
  bool waits_for_itself(const lock::Request &request) const override;
  bool is_outstanding() const override;
  std::string describe(Nanos now) const override;

 private:
  // One server, and what is known of it.
  struct Node {
    Node(lock::Output &output, size_t index_, const Settings &settings_,
         std::span<const uint8_t, 16> random, uint64_t seed)
        : index(index_), settings(settings_), engine(settings_, random, seed, output, index_) {}

    bool is_replica() const { return !refusal.ok() && facts.is_replica; }

    const size_t index;
    const Settings &settings;
    lock::Engine engine;
    std::shared_ptr<lock::Request> connection;  // asks for one until it is there
    bool was_tried = false;                     // at least one attempt is over
    bool was_good = false;                      // .. and one found nothing wrong
    Outcome refusal;                            // why this is no node of a quorum; ok: it is
    ServerFacts facts;                          // of the last connection
    std::string run_id;                         // the last that is known
    bool is_aged = false;                       // facts.age is known
    Nanos guarded_until = 0;                    // it restarted since we first saw it
    Nanos votes_at = 0;                         // from then on it is old enough
    Nanos heard_at = 0;
    std::string trouble;  // why it did not vote when it was asked last
  };

  // nodes.cc: reports of the engines
  void send(size_t node, std::span<const std::string_view> argv) override;
  void finished(lock::Request &request) override;
  void lease_ended(lock::Lease &lease) override;
  void lease_moved(lock::Lease &lease) override;
  void drop_link(size_t node) override;

  // nodes.cc: who may vote
  bool is_guarded() const { return settings_.restart_guard > 0 && !settings_.is_durable; }
  void set_refusal(Node &node, Outcome why, Nanos now);
  void withdraw_votes(const Node &node, const Outcome &why, Nanos now);
  void note_ages();
  Outcome judge(const Node &node) const;
  const Node *twin_of(const Node &node) const;
  bool can_vote(const Node &node, Nanos now) const {
    return node.engine.is_up() && node.refusal.ok() && node.votes_at <= now;
  }
  Outcome why_no_vote(const Node &node, Nanos now) const;
  size_t voter_count(Nanos now) const;
  void keep_connected(Node &node, Nanos now) noexcept;
  void hurry(Nanos now);
  bool is_mistake(const Node &node, size_t replica_count) const;
  Outcome refusal() const;
  std::vector<size_t> order_of(std::string_view name) const;

  // quorum.cc: calls, and what they are about
  void finish(lock::Request &request, Status status, std::string_view message = {}) noexcept;
  void mark(Matter *matter) noexcept;
  void mark_waiting(const Node &node) noexcept;
  void settle(Nanos now) noexcept;
  void give_up(Matter &matter, Nanos now) noexcept;
  Matter *find(const lock::Subject &subject) const;
  Bid *bid_of(const lock::Lease &lease) const;
  void detach(lock::Request &request, Nanos now);
  void keep(std::shared_ptr<Matter> matter, const lock::Subject &subject);
  void forget(Matter &matter) noexcept;

  // bid.cc: from a call to enough votes
  void start_bid(const std::shared_ptr<lock::Request> &request, Nanos now);
  Outcome check(const lock::Request &request) const;
  void review(Bid &bid, Nanos now);
  void take_answers(Bid &bid, Nanos now);
  void gather(Bid &bid, Nanos now);
  void begin_round(Bid &bid, Nanos now);
  void ask_later(Bid &bid, size_t node, Nanos now);
  void ask(Bid &bid, size_t node, uint64_t rid, Nanos now);
  void take_answer(Bid &bid, size_t node, Nanos now);
  void count_votes(Bid &bid, Nanos now);
  Nanos valid_until(const Bid &bid, Nanos now) const;
  void end_round(Bid &bid, Nanos now);
  void stand_in_line(Bid &bid, const std::vector<size_t> &order, size_t place, Nanos now);
  void check_line(Bid &bid, Nanos now);
  void silence(Bid &bid, size_t node, Outcome why, Nanos now);
  void drop_vote(Bid &bid, size_t node, Nanos now, bool is_lost = false) noexcept;
  void drop_votes(Bid &bid, Nanos now, bool is_lost = false) noexcept;
  void pause(Bid &bid, Nanos now);
  void fail(Bid &bid, Status status, std::string_view message, Nanos now) noexcept;
  void fail_late(Bid &bid, Nanos now);
  void note_blocker(Bid &bid) const;
  std::string holder_words(const Bid &bid) const;
  Outcome why_not(const Bid &bid, Nanos now) const;
  Nanos node_limit(const Bid &bid) const {
    return settings_.node_timeout > 0 ? settings_.node_timeout
                                      : timing::node_limit(bid.options.lease);
  }

  std::string of_nodes(size_t count) const {
    return std::to_string(count) + " of " + std::to_string(nodes_.size()) + " nodes";
  }

  // tenure.cc: from enough votes to the end of the lease
  void accept(Bid &bid, Nanos now);
  void raise_fence(Bid &bid, Nanos now);
  void write_fence(Bid &bid, size_t node, Nanos now);
  void check_fence(Bid &bid, Nanos now);
  void grant(Bid &bid, Nanos now);
  void succeed(Bid &bid);
  bool is_certain(const Bid &bid, Nanos now) const;
  Nanos next_top_up(const Bid &bid, Nanos now);
  void top_up(Bid &bid, Nanos now);
  void count_in(Bid &bid, size_t node, Nanos now);
  void lose_vote(Bid &bid, size_t node, Nanos now);
  void doubt(Bid &bid, Nanos now);
  void look_after(Bid &bid, Nanos now);
  void end_lease(Bid &bid, lock::Lease::State state, std::string reason) noexcept;

  // errand.cc: what all votes of a lease are asked
  void start_errand(const std::shared_ptr<lock::Request> &request, Nanos now);
  void review(Errand &errand, Nanos now);
  Outcome why_not(const Errand &errand, size_t done, size_t unknown) const;

  const QuorumSettings &settings_;
  lock::Output &output_;
  Entropy entropy_;
  std::vector<std::unique_ptr<Node>> nodes_;
  size_t majority_;
  uint64_t last_rid_ = 0;
  bool is_shut_ = false;

  std::map<uint64_t, std::shared_ptr<Matter>> matters_;  // by number: a fixed order for every run
  // By request or lease of the user; only looked up.
  std::unordered_map<const lock::Subject *, Matter *> index_;
  uint64_t last_matter_ = 0;
  lock::TimerQueue timers_;
  Matter *first_marked_ = nullptr;
  Matter *last_marked_ = nullptr;
};

}  // namespace redlatch::quorum
