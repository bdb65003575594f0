// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// QuorumClient: a lock on most of several independent servers, the nodes (Redlock). It has no
// mutex, thread, socket or clock; one thread at a time calls it.
//
// It uses one lock client for each node, and sends no command of its own: a vote is a lease of that
// node's client, which renews and releases it, cleans up after lost replies and reports a loss. The
// quorum decides how many votes are enough and at which node to queue; NodeEligibility decides
// which nodes may vote.
//
// The nodes' clients report through Output in the middle of their work. So a report only marks its
// request, and review_marked() reviews all marked ones before the call into the quorum returns.
//
// start() throws only before it has started anything.
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
#include "lock/lock_client.h"
#include "lock/service.h"
#include "lock/timer_queue.h"
#include "quorum/node_eligibility.h"
#include "quorum/quorum_request.h"
#include "timing/backoff.h"
#include "timing/quorum.h"

namespace redlatch::quorum {

class QuorumClient final : public lock::LockService, private lock::Output {
 public:
  // `random` makes the constant part of all tokens, the same on all nodes. Settings and output
  // outlive the client.
  QuorumClient(std::span<const Settings> nodes, const QuorumSettings &settings,
               std::span<const uint8_t, 16> random, uint64_t seed, lock::Output &output);
  ~QuorumClient() override;

  const std::string &channel(size_t node) const override { return nodes_[node]->client.channel(0); }
  bool needs_identity() const override { return true; }

  // Requests: kConnect, kAcquire, kRelease, kExtend, kDetach, kCheck.
  void start(const std::shared_ptr<lock::Request> &request, Nanos now) override;
  Status cancel(lock::Request &request, Nanos now) override;
  void release_async(lock::Lease &lease, Nanos now) override;
  void shut_down(Nanos now) override;
  void give_up() override;
  // A node that is not connected counts as drained.
  size_t drained_count() const override;

  [[nodiscard]] bool begin_connect(size_t node, Nanos now) override;
  void on_connected(size_t node, const ServerFacts &facts, Nanos now) override;
  void on_connect_failed(size_t node, const Outcome &why, Nanos now) override;
  void on_disconnected(size_t node, Nanos now) noexcept override;
  void on_reply(size_t node, const Reply &reply, Nanos now) override;
  void on_push(size_t node, std::string_view message, Nanos now) override;
  void on_messages_heard(size_t node, Nanos now) override {
    nodes_[node]->client.on_messages_heard(node, now);
  }
  void on_invalidated(size_t node, std::string_view key, Nanos now) override;
  void on_all_invalidated(size_t node, Nanos now) override;
  void check_later(size_t node, Nanos due) override { nodes_[node]->client.check_later(node, due); }

  void on_timer(Nanos now) override;
  Nanos next_due() const override;

  size_t in_flight_count(size_t node) const override {
    return nodes_[node]->client.in_flight_count(node);
  }
  bool expects_push() const override;
  bool waits_for_itself(const lock::Request &request) const override;
  bool is_outstanding() const override;
  void describe(std::span<NodeStatus> nodes, Nanos now) override;

 private:
  // One server, and its last reports.
  struct Node {
    Node(lock::Output &output, size_t index_, const Settings &settings_,
         std::span<const uint8_t, 16> random, uint64_t seed)
        : index(index_), settings(settings_), client(settings_, random, seed, output, index_) {}

    const size_t index;
    const Settings &settings;
    lock::LockClient client;
    std::shared_ptr<lock::Request> connection;  // the request to connect, until it ends
    Nanos last_reply_at = 0;
    std::string trouble;  // why it did not vote when it was last asked
  };

  // Reports of the nodes' clients.
  void send(size_t node, std::span<const std::string_view> argv) override;
  void finished(lock::Request &request) override;
  void lease_ended(lock::Lease &lease) override;
  void lease_moved(lock::Lease &lease) override;
  void drop_link(size_t node) override;
  void send_on_messages(size_t node, std::span<const std::string_view> argv) override {
    output_.send_on_messages(node, argv);
  }
  void warn(std::string_view text) override { output_.warn(text); }
  void defect_found(std::string_view what) noexcept override;
  void health_found(size_t node, const protocol::HealthFacts &facts,
                    const protocol::LockTrial *trial) override {
    output_.health_found(node, facts, trial);
  }

  // Nodes.
  void on_validated(size_t node, bool is_news, Nanos now);
  void withdraw_votes(size_t node, const Outcome &why, Nanos now);
  bool can_vote(const Node &node, Nanos now) const {
    return node.client.is_up() && eligibility_.may_vote(node.index, now);
  }
  Outcome why_no_vote(const Node &node, Nanos now) const;
  size_t voter_count(Nanos now) const;
  void keep_connected(Node &node, Nanos now) noexcept;
  void connect_now(Nanos now);

  // Operations.
  void finish(lock::Request &request, Status status, std::string_view message = {}) noexcept;
  void mark(QuorumRequest *operation) noexcept;
  void mark_waiting(const Node &node) noexcept;
  void review_marked(Nanos now) noexcept;
  void give_up(QuorumRequest &operation, Nanos now) noexcept;
  QuorumRequest *find(const void *subject) const;
  QuorumAcquire *acquire_of(const lock::Lease &lease) const;
  void detach(lock::Request &request, Nanos now);
  void keep(std::shared_ptr<QuorumRequest> operation, const void *subject);
  void forget(QuorumRequest &operation) noexcept;

  // round.cc: from a call to enough votes
  void start_acquire(const std::shared_ptr<lock::Request> &request, Nanos now);
  Outcome check(const lock::Request &request) const;
  void review(QuorumAcquire &acquire, Nanos now);
  void take_answers(QuorumAcquire &acquire, Nanos now);
  void gather(QuorumAcquire &acquire, Nanos now);
  void begin_round(QuorumAcquire &acquire, Nanos now);
  uint64_t next_rid();
  void ask_later(QuorumAcquire &acquire, size_t node, Nanos now);
  void ask(QuorumAcquire &acquire, size_t node, uint64_t rid, Nanos now);
  void take_answer(QuorumAcquire &acquire, size_t node, Nanos now);
  void count_votes(QuorumAcquire &acquire, Nanos now);
  Nanos valid_until(const QuorumAcquire &acquire, Nanos now) const;
  void end_round(QuorumAcquire &acquire, Nanos now);
  void queue_at_node(QuorumAcquire &acquire, const std::vector<size_t> &order, size_t place,
                     Nanos now);
  void check_queue(QuorumAcquire &acquire, Nanos now);
  void mark_unavailable(QuorumAcquire &acquire, size_t node, Outcome why, Nanos now);
  void drop_vote(QuorumAcquire &acquire, size_t node, Nanos now, bool is_lost = false) noexcept;
  void drop_votes(QuorumAcquire &acquire, Nanos now, bool is_lost = false) noexcept;
  void pause(QuorumAcquire &acquire, Nanos now);
  void fail(QuorumAcquire &acquire, Status status, std::string_view message, Nanos now) noexcept;
  void fail_late(QuorumAcquire &acquire, Nanos now);
  void note_blocker(QuorumAcquire &acquire) const;
  std::string holder_words(const QuorumAcquire &acquire) const;
  Outcome why_not(const QuorumAcquire &acquire, Nanos now) const;
  Nanos node_limit(const QuorumAcquire &acquire) const {
    return settings_.node_timeout > 0 ? settings_.node_timeout
                                      : timing::node_limit(acquire.options.ttl);
  }

  // kWrongType if the key holds data on so many nodes that the others are no majority.
  Outcome wrong_type(const QuorumAcquire &acquire) const;
  std::string of_nodes(size_t count) const {
    return std::to_string(count) + " of " + std::to_string(nodes_.size()) + " nodes";
  }

  // quorum_lease.cc: from enough votes to the end of the lease
  void accept(QuorumAcquire &acquire, Nanos now);
  void raise_fence(QuorumAcquire &acquire, Nanos now);
  void write_fence(QuorumAcquire &acquire, size_t node, Nanos now);
  void check_fence(QuorumAcquire &acquire, Nanos now);
  void grant(QuorumAcquire &acquire, Nanos now);
  void succeed(QuorumAcquire &acquire);
  bool is_certain(const QuorumAcquire &acquire, Nanos now) const;
  Nanos next_top_up(const QuorumAcquire &acquire, Nanos now);
  void top_up(QuorumAcquire &acquire, Nanos now);
  void count_in(QuorumAcquire &acquire, size_t node, Nanos now);
  void lose_vote(QuorumAcquire &acquire, size_t node, Nanos now);
  void doubt(QuorumAcquire &acquire, Nanos now);
  void maintain(QuorumAcquire &acquire, Nanos now);
  void end_lease(QuorumAcquire &acquire, lock::Lease::State state, lock::Loss loss) noexcept;
  void end_acquire(QuorumAcquire &acquire, lock::Lease::State state, Nanos now);

  // fan_out.cc: requests to all votes of a lease
  void start_fan_out(const std::shared_ptr<lock::Request> &request, Nanos now);
  void review(FanOut &fan_out, Nanos now);
  void start_check(const std::shared_ptr<lock::Request> &request, Nanos now);
  void end_checks(size_t node, Nanos now) noexcept;
  void review_check(FanOut &check);

  const QuorumSettings &settings_;
  lock::Output &output_;
  Entropy entropy_;
  std::vector<std::unique_ptr<Node>> nodes_;
  size_t majority_;
  NodeEligibility eligibility_;
  uint64_t last_rid_ = 0;
  bool is_shut_ = false;

  std::map<uint64_t, std::shared_ptr<QuorumRequest>>
      operations_;  // by id: the same order in each run
  // By request or lease of the user.
  std::unordered_map<const void *, QuorumRequest *> index_;
  uint64_t last_operation_ = 0;
  lock::TimerQueue timers_;
  QuorumRequest *first_marked_ = nullptr;
  QuorumRequest *last_marked_ = nullptr;
};

}  // namespace redlatch::quorum
