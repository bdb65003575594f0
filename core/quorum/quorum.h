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
// Engines report through Outlet in the middle of their work. So a report only marks what it is
// about (a Matter), and settle() looks at it as a whole before the call into the quorum returns.
//
// It throws only std::bad_alloc, from start() and before anything was started.
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
#include "engine/engine.h"
#include "engine/timer_queue.h"
#include "policy/backoff.h"
#include "policy/quorum.h"
#include "quorum/matters.h"

namespace redlatch::quorum {

// Where the quorum's actions go: engine::Outlet for several nodes. No call comes back from here.
class Outlet {
 public:
  virtual ~Outlet() = default;
  virtual void send(size_t node, std::span<const std::string_view> argv) = 0;
  virtual void finished(engine::Request &request) = 0;
  virtual void lease_ended(engine::Lease &lease) = 0;
  virtual void drop_link(size_t node) = 0;
  // A fault of a connected node was found, or is gone.
  virtual void judged(size_t, const Outcome &) {}
};

// What a node says of itself on a fresh connection.
struct NodeFacts {
  std::string run_id;  // empty: it may not be asked
  policy::Age age;     // its told_at is the time at which it was asked
  bool is_replica = false;
  bool is_cluster_member = false;
  Outcome why_unknown;  // without a run id
};

class Quorum {
 public:
  // `random` makes the token's constant part, the same on all nodes. Settings and outlet outlive
  // the quorum.
  Quorum(std::span<const Settings> nodes, const QuorumSettings &settings,
         std::span<const uint8_t, 16> random, uint64_t seed, Outlet &outlet);
  ~Quorum();
  Quorum(const Quorum &) = delete;
  Quorum &operator=(const Quorum &) = delete;

  // Calls of users, as those of the engine. Requests: kConnect, kAcquire, kRelease, kExtend.
  void start(const std::shared_ptr<engine::Request> &request, Nanos now);
  Status cancel(engine::Request &request, Nanos now);
  void abandon(engine::Lease &lease, Nanos now);
  void shut_down(Nanos now);
  void give_up();
  // How many nodes have answered all that was given back, or cannot be told.
  size_t drained_count() const;

  // Events of the connection to a node, as those of the engine.
  [[nodiscard]] bool begin_connect(size_t node, Nanos now);
  void on_connected(size_t node, const engine::ServerFacts &server, const NodeFacts &facts,
                    Nanos now);
  void on_connect_failed(size_t node, const Outcome &why, Nanos now);
  void on_disconnected(size_t node, Nanos now) noexcept;
  void on_reply(size_t node, const Reply &reply, Nanos now);
  void on_push(size_t node, std::string_view message, Nanos now);
  void on_invalidated(size_t node, std::string_view key, Nanos now);
  void on_all_invalidated(size_t node, Nanos now);

  void on_timer(Nanos now);
  Nanos next_due() const;

  size_t node_count() const { return nodes_.size(); }
  // The channel to subscribe to, on every node.
  const std::string &channel() const { return nodes_.front()->engine.channel(); }
  // Whether an answer or a message may come from some node.
  bool is_outstanding() const;
  // One line for each node: whether it votes, or why not.
  std::string describe(Nanos now) const;

 private:
  // One server, and what is known of it.
  struct Node final : engine::Outlet {
    Node(Quorum &quorum_, size_t index_, const Settings &settings_,
         std::span<const uint8_t, 16> random, uint64_t seed)
        : quorum(quorum_),
          index(index_),
          settings(settings_),
          engine(settings_, random, seed, *this) {}

    void send(std::span<const std::string_view> argv) override;
    void finished(engine::Request &request) override;
    void lease_ended(engine::Lease &lease) override;
    void lease_moved(engine::Lease &lease) override;
    void drop_link() override;

    bool is_replica() const { return !refusal.ok() && facts.is_replica; }

    Quorum &quorum;
    const size_t index;
    const Settings &settings;
    engine::Engine engine;
    std::shared_ptr<engine::Request> connection;  // asks for one until it is there
    bool was_tried = false;                       // at least one attempt is over
    bool was_good = false;                        // .. and one found nothing wrong
    Outcome refusal;                              // why this is no node of a quorum; ok: it is
    NodeFacts facts;                              // of the last connection
    std::string run_id;                           // the last that is known
    bool is_aged = false;                         // facts.age is known
    Nanos guarded_until = 0;                      // it restarted since we first saw it
    Nanos votes_at = 0;                           // from then on it is old enough
    Nanos heard_at = 0;
    std::string trouble;  // why it did not vote when it was asked last
  };

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
  void finish(engine::Request &request, Status status, std::string_view message = {}) noexcept;
  void mark(Matter *matter) noexcept;
  void mark_waiting(const Node &node) noexcept;
  void settle(Nanos now) noexcept;
  void give_up(Matter &matter, Nanos now) noexcept;
  Matter *find(const engine::Subject &subject) const;
  Bid *bid_of(const engine::Lease &lease) const;
  void detach(engine::Request &request, Nanos now);
  void keep(std::shared_ptr<Matter> matter, const engine::Subject &subject);
  void forget(Matter &matter) noexcept;

  // bid.cc: from a call to enough votes
  void start_bid(const std::shared_ptr<engine::Request> &request, Nanos now);
  Outcome check(const engine::Request &request) const;
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
  std::string holder_words(std::string_view name) const;
  Outcome why_not(const Bid &bid, Nanos now) const;
  Nanos node_limit(const Bid &bid) const {
    return settings_.node_timeout > 0 ? settings_.node_timeout
                                      : policy::node_limit(bid.options.lease);
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
  void end_lease(Bid &bid, engine::Lease::State state, std::string reason) noexcept;

  // errand.cc: what all votes of a lease are asked
  void start_errand(const std::shared_ptr<engine::Request> &request, Nanos now);
  void review(Errand &errand, Nanos now);
  Outcome why_not(const Errand &errand, size_t done, size_t unknown) const;

  const QuorumSettings &settings_;
  Outlet &outlet_;
  Entropy entropy_;
  std::vector<std::unique_ptr<Node>> nodes_;
  size_t majority_;
  uint64_t last_rid_ = 0;
  bool is_shut_ = false;

  std::map<uint64_t, std::shared_ptr<Matter>> matters_;  // by number: a fixed order for every run
  // By request or lease of the user; only looked up.
  std::unordered_map<const engine::Subject *, Matter *> index_;
  uint64_t last_matter_ = 0;
  engine::TimerQueue timers_;
  Matter *first_marked_ = nullptr;
  Matter *last_marked_ = nullptr;
};

}  // namespace redlatch::quorum
