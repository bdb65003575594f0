// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// ClusterClient: locks on the nodes of a Redis or Valkey cluster. It has no mutex, thread, socket
// or clock; one thread at a time calls it (docs/design/0020-cluster.md).
//
// Each node in use has a lock client, which is made when it is needed. A call goes to the client of
// the node that serves the slot of its lock. When a slot moves, its locks move. An attempt to
// connect node 0 (Router) reads which node serves which slot, and the locks that it has move to
// their nodes.
//
// The clients report through Output in the middle of their work. So a report is only noted, and
// carry_out_plans() acts on it before the call into the cluster returns.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/reply.h"
#include "base/settings.h"
#include "base/status.h"
#include "cluster/all_primaries.h"
#include "cluster/router.h"
#include "lock/lock_client.h"
#include "lock/service.h"
#include "timing/backoff.h"

namespace redlatch::cluster {

class ClusterClient final : public lock::LockService, private lock::Output {
 public:
  // `random` makes the channels. Settings and output outlive the client.
  ClusterClient(const Settings &settings, std::span<const uint8_t, 16> random, uint64_t seed,
                lock::Output &output);

  // Takes over all that was asked of `from`, which has turned out to be connected to a node of a
  // cluster. Before the first call. Throws std::bad_alloc, and then nothing has changed.
  void adopt(lock::LockClient &from, Nanos now) { router_.adopt(from, now); }

  const std::string &channel(size_t node) const override {
    return router_.nodes()[node].client.channel(node);
  }

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
  void on_reply(size_t node, const Reply &reply, Nanos now) override {
    pass(&lock::LockClient::on_reply, now, node, reply);
  }
  void on_push(size_t node, std::string_view message, Nanos now) override {
    pass(&lock::LockClient::on_push, now, node, message);
  }
  void on_messages_heard(size_t node, Nanos now) override {
    router_.client(node).on_messages_heard(node, now);
  }
  void on_invalidated(size_t node, std::optional<std::string_view> key, Nanos now) override {
    pass(&lock::LockClient::on_invalidated, now, node, key);
  }
  void on_unsubscribed(size_t node, Nanos now) override;
  void check_later(size_t node, Nanos due) override { router_.client(node).check_later(node, due); }
  [[nodiscard]] bool begin_side_connect(size_t node, Nanos now) override {
    return router_.client(node).begin_side_connect(node, now);
  }
  void on_side_connected(size_t node, Nanos now) override {
    pass(&lock::LockClient::on_side_connected, now, node);
  }
  void on_side_connect_failed(size_t node, const Outcome &why, Nanos now) override {
    pass(&lock::LockClient::on_side_connect_failed, now, node, why);
  }
  void on_side_disconnected(size_t node, Nanos now) noexcept override;
  void on_side_reply(size_t node, const Reply &reply, Nanos now) override {
    pass(&lock::LockClient::on_side_reply, now, node, reply);
  }

  std::vector<HostPort> known_servers() const override { return router_.servers(); }
  void on_slots_read(std::span<const protocol::SlotRange> ranges, Nanos now) override;

  void on_timer(Nanos now) override;
  Nanos next_due() const override;

  size_t in_flight_count(size_t node) const override {
    return router_.nodes()[node].client.in_flight_count(node);
  }
  bool expects_push() const override { return has_any(&lock::LockClient::expects_push); }
  bool is_outstanding() const override { return has_any(&lock::LockClient::is_outstanding); }
  bool waits_for_itself(const lock::Request &request) const override;
  void describe(std::span<NodeStatus> nodes, Nanos now) override;
  // True if nothing is left of what users asked for.
  bool is_idle() const;
  // The sentence of the model that does not hold, or null.
  const char *check() const;

 private:
  // Reports of the clients.
  void send(size_t node, std::span<const std::string_view> argv) override {
    output_.send(node, argv);
  }
  void finished(lock::Request &request) override {
    if (!all_primaries_.is_part(request)) output_.finished(request);
  }
  void lease_ended(lock::Lease &lease) override { output_.lease_ended(lease); }
  void lease_moved(lock::Lease &lease) override { output_.lease_moved(lease); }
  void drop_link(size_t node) override { output_.drop_link(node); }
  void send_on_messages(size_t node, std::span<const std::string_view> argv) override {
    output_.send_on_messages(node, argv);
  }
  void send_on_side(size_t node, std::span<const std::string_view> argv) override {
    output_.send_on_side(node, argv);
  }
  void open_node(size_t node, const Settings &settings) override {
    output_.open_node(node, settings);
  }
  void drop_side(size_t node) override { output_.drop_side(node); }
  void warn(std::string_view text) override { output_.warn(text); }
  void defect_found(std::string_view what) noexcept override { output_.defect_found(what); }
  void health_found(size_t node, const protocol::HealthFacts &facts,
                    const protocol::LockTrial *trial) override {
    output_.health_found(node, facts, trial);
  }
  void redirected(size_t node, const protocol::Redirect &redirect) override;
  bool ask_elsewhere(size_t node, const HostPort &to,
                     const std::shared_ptr<lock::DelegatedCommand> &delegated) override;
  bool continues_list(const std::shared_ptr<lock::Request> &request) override {
    return all_primaries_.continues_list(request);
  }

  template <class Is>
  bool has_any(Is is) const {
    return std::any_of(router_.nodes().begin(), router_.nodes().end(),
                       [is](const Node &node) { return (node.client.*is)(); });
  }
  // An event of one client.
  template <class Event, class... What>
  void pass(Event event, Nanos now, size_t node, const What &...what) {
    now_ = now;
    (router_.client(node).*event)(node, what..., now);
    carry_out_plans(now);
  }
  size_t home_of(const lock::Request &request) const;
  void route(const std::shared_ptr<lock::Request> &request, Nanos now);
  void finish(lock::Request &request, Status status, std::string_view message);
  void want_map(Nanos now);
  void place_unrouted(Nanos now);
  void carry_out_plans(Nanos now) noexcept;

  const Settings &settings_;
  lock::Output &output_;
  Router router_;
  AllPrimaries all_primaries_{settings_, router_, output_};
  bool is_map_known_ = false;
  bool is_map_wanted_ = false;
  bool is_map_read_ = false;  // an attempt is under way
  bool is_shut_ = false;
  Nanos map_at_ = 0;  // when it may be read
  timing::Backoff map_pause_ = timing::kReconnect;
  std::map<uint16_t, HostPort> recent_;  // redirects since the attempt to read the map began
  Nanos plans_due_ = kNever;             // when to try again what failed for want of memory
  Nanos now_ = 0;                        // of the event
};

}  // namespace redlatch::cluster
