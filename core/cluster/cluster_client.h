// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// ClusterClient: locks on the nodes of a Redis or Valkey cluster. It has no mutex, thread, socket
// or clock; one thread at a time calls it (docs/design/0020-cluster.md).
//
// A lock client has all the nodes in use, and a call goes to the node that serves the slot of its
// lock. When a slot moves, its locks move. An attempt to connect node 0 (Router) reads which node
// serves which slot, and the locks that it has move to their nodes.
//
// The client reports through Placement in the middle of its work. So a report is only noted, and
// carry_out_plans() acts on it before the call into the cluster returns.
#pragma once

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

class ClusterClient final : public lock::LockService, private lock::Placement {
 public:
  // `random` makes the channels. Settings and output outlive the client.
  ClusterClient(const Settings &settings, std::span<const uint8_t, 16> random, uint64_t seed,
                lock::Output &output);
  // With a client of the same settings and output, whose server has turned out to be a node of a
  // cluster, and which is not connected. Throws std::bad_alloc, and then `client` is as before.
  ClusterClient(const Settings &settings, std::span<const uint8_t, 16> random, uint64_t seed,
                lock::Output &output, std::unique_ptr<lock::LockClient> &&client);

  const std::string &channel(size_t node) const override { return client_->channel(node); }

  void start(const std::shared_ptr<lock::Request> &request, Nanos now) override;
  Status cancel(lock::Request &request, Nanos now) override;
  void release_async(lock::Lease &lease, Nanos now) override;
  void shut_down(Nanos now) override;
  void give_up() override { client_->give_up(); }
  size_t drained_count() const override { return client_->drained_count(); }

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
  void on_messages_heard(size_t node, Nanos now) override { client_->on_messages_heard(node, now); }
  void on_invalidated(size_t node, std::optional<std::string_view> key, Nanos now) override {
    pass(&lock::LockClient::on_invalidated, now, node, key);
  }
  void on_unsubscribed(size_t node, Nanos now) override;
  void check_later(size_t node, Nanos due) override { client_->check_later(node, due); }
  [[nodiscard]] bool begin_side_connect(size_t node, Nanos now) override {
    return client_->begin_side_connect(node, now);
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

  size_t in_flight_count(size_t node) const override { return client_->in_flight_count(node); }
  bool expects_push() const override { return client_->expects_push(); }
  bool is_outstanding() const override { return client_->is_outstanding(); }
  const lock::Request *waits_for_itself(const lock::Request &request) const override {
    return client_->waits_for_itself(request);
  }
  void describe(std::span<NodeStatus> nodes, Nanos now) override { client_->describe(nodes, now); }
  // True if nothing is left of what users asked for.
  bool is_idle() const;
  // The sentence of the model that does not hold, or null.
  const char *check() const;

 private:
  // lock::Placement
  void redirected(const lock::Server &server, const protocol::Redirect &redirect) override;
  bool ask_elsewhere(const HostPort &to,
                     const std::shared_ptr<lock::DelegatedCommand> &delegated) override;
  bool continues_list(const std::shared_ptr<lock::Request> &request) override {
    return all_primaries_.continues_list(request);
  }

  // An event of one node.
  template <class Event, class... What>
  void pass(Event event, Nanos now, size_t node, const What &...what) {
    now_ = now;
    ((*client_).*event)(node, what..., now);
    carry_out_plans(now);
  }
  void route(const std::shared_ptr<lock::Request> &request, Nanos now);
  void finish(lock::Request &request, Status status, std::string_view message);
  void want_map(Nanos now);
  void place_unplaced(Nanos now);
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
  // Last: it ends first, and it was another's until nothing more could fail.
  std::unique_ptr<lock::LockClient> client_;
};

}  // namespace redlatch::cluster
