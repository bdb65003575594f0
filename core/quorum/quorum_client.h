// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// QuorumClient: a lock on most of several independent servers, the nodes (Redlock). It has no
// mutex, thread, socket or clock; one thread at a time calls it.
//
// It uses one lock client for each node, and sends no command of its own: a vote is a lease of that
// node's client, which renews and releases it, cleans up after lost replies and reports a loss. The
// quorum decides how many votes are enough and at which node to queue (QuorumAcquire).
// NodeEligibility decides which nodes may vote.
//
// start() throws only before it has started anything.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/reply.h"
#include "base/settings.h"
#include "base/status.h"
#include "lock/service.h"
#include "quorum/nodes.h"
#include "quorum/quorum_acquire.h"
#include "quorum/quorum_request.h"

namespace redlatch::quorum {

class QuorumClient final : public lock::LockService, private lock::Output {
 public:
  // `random` makes the constant part of all tokens, the same on all nodes. Settings and output
  // outlive the client.
  QuorumClient(std::span<const Settings> nodes, const QuorumSettings &settings,
               std::span<const uint8_t, 16> random, uint64_t seed, lock::Output &output);

  const std::string &channel(size_t node) const override {
    return nodes_[node].client.channel(node);
  }
  bool needs_identity() const override { return true; }

  // Requests: kConnect, kAcquire, kRelease, kExtend, kDetach, kCheck.
  void start(const std::shared_ptr<lock::Request> &request, Nanos now) override;
  Status cancel(lock::Request &request, Nanos now) override;
  void release_async(lock::Lease &lease, Nanos now) override;
  void shut_down(Nanos now) override;
  void give_up() override;
  // A node that is not connected counts as drained.
  size_t drained_count() const override;

  [[nodiscard]] bool begin_connect(size_t node, Nanos now) override {
    return nodes_[node].client.begin_connect(node, now);
  }
  void on_connected(size_t node, const ServerFacts &facts, Nanos now) override;
  void on_connect_failed(size_t node, const Outcome &why, Nanos now) override;
  void on_disconnected(size_t node, Nanos now) noexcept override;
  void on_reply(size_t node, const Reply &reply, Nanos now) override;
  void on_push(size_t node, std::string_view message, Nanos now) override;
  void on_messages_heard(size_t node, Nanos now) override {
    nodes_[node].client.on_messages_heard(node, now);
  }
  void on_invalidated(size_t node, std::optional<std::string_view> key, Nanos now) override {
    nodes_[node].client.on_invalidated(node, key, now);
    requests_.review_marked(now);
  }
  void check_later(size_t node, Nanos due) override { nodes_[node].client.check_later(node, due); }

  void on_timer(Nanos now) override;
  Nanos next_due() const override;

  size_t in_flight_count(size_t node) const override {
    return nodes_[node].client.in_flight_count(node);
  }
  bool expects_push() const override { return has_any(&lock::LockClient::expects_push); }
  const lock::Request *waits_for_itself(const lock::Request &request) const override;
  bool is_outstanding() const override { return has_any(&lock::LockClient::is_outstanding); }
  void describe(std::span<NodeStatus> nodes, Nanos now) override { nodes_.describe(nodes, now); }

 private:
  // Reports of the nodes' clients.
  void send(size_t node, std::span<const std::string_view> argv) override {
    output_.send(node, argv);
  }
  void finished(lock::Request &request) override;
  void lease_ended(lock::Lease &lease) override;
  void lease_moved(lock::Lease &lease) override { lease_ended(lease); }
  void drop_link(size_t node) override { output_.drop_link(node); }
  void send_on_messages(size_t node, std::span<const std::string_view> argv) override {
    output_.send_on_messages(node, argv);
  }
  void warn(std::string_view text) noexcept override { output_.warn(text); }
  void defect_found(std::string_view what) noexcept override { output_.defect_found(what); }
  void health_found(size_t node, const protocol::HealthFacts &facts,
                    const protocol::LockTrial *trial) override {
    output_.health_found(node, facts, trial);
  }

  template <class Is>
  bool has_any(Is is) const {
    return std::any_of(nodes_.begin(), nodes_.end(),
                       [is](const Node &node) { return (node.client.*is)(); });
  }
  void on_validated(size_t node, bool is_news, Nanos now);
  void withdraw_votes(size_t node, const Outcome &why, Nanos now);
  void mark_waiting(size_t node) noexcept;
  // No answer will come from `node`.
  void end_checks(size_t node, Nanos now) noexcept;

  Outcome check(const lock::Request &request) const;
  void refuse(lock::Request &request, const Outcome &why);
  void start_acquire(const std::shared_ptr<lock::Request> &request, Nanos now);
  void start_fan_out(const std::shared_ptr<lock::Request> &request, Nanos now);
  void start_check(const std::shared_ptr<lock::Request> &request, Nanos now);
  void detach(lock::Request &request, Nanos now);

  lock::Output &output_;
  Nodes nodes_;
  Requests requests_;
  bool is_shut_ = false;
};

}  // namespace redlatch::quorum
