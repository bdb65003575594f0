// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// ClusterClient: locks on the nodes of a Redis or Valkey cluster. It has no mutex, thread, socket
// or clock; one thread at a time calls it (docs/design/0020-cluster.md).
//
// Each node in use has a lock client, which is made when it is needed. A call goes to the client of
// the node that serves the slot of its lock. When a slot moves, its locks move: the old client
// stops sending, and when no command about them is under way, the new client takes them over.
//
// Node 0 is not a server. Its client, the unrouted one, has the locks whose node is not known. It
// never connects: an attempt to connect reads which node serves which slot, and the locks move to
// their nodes.
//
// The clients report through Output in the middle of their work. So a report is only noted, and
// carry_out_plans() acts on it before the call into the cluster returns.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "base/reply.h"
#include "base/settings.h"
#include "base/status.h"
#include "base/text.h"
#include "cluster/slot_map.h"
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
  void adopt(lock::LockClient &from, Nanos now);

  const std::string &channel(size_t node) const override {
    return nodes_[node]->client.channel(node);
  }
  bool needs_identity() const override { return false; }

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
    client(node).on_messages_heard(node, now);
  }
  void on_invalidated(size_t node, std::string_view key, Nanos now) override;
  void on_all_invalidated(size_t node, Nanos now) override;
  void on_unsubscribed(size_t node, Nanos now) override;
  void check_later(size_t node, Nanos due) override { client(node).check_later(node, due); }
  [[nodiscard]] bool begin_side_connect(size_t node, Nanos now) override;
  void on_side_connected(size_t node, Nanos now) override;
  void on_side_connect_failed(size_t node, const Outcome &why, Nanos now) override;
  void on_side_disconnected(size_t node, Nanos now) noexcept override;
  void on_side_reply(size_t node, const Reply &reply, Nanos now) override;

  std::vector<HostPort> known_servers() const override;
  void on_slots_read(std::span<const protocol::SlotRange> ranges, Nanos now) override;

  void on_timer(Nanos now) override;
  Nanos next_due() const override;

  size_t in_flight_count(size_t node) const override {
    return nodes_[node]->client.in_flight_count(node);
  }
  bool expects_push() const override;
  bool is_outstanding() const override;
  bool waits_for_itself(const lock::Request &request) const override;
  void describe(std::span<NodeStatus> nodes, Nanos now) override;
  // True if nothing is left of what users asked for.
  bool is_idle() const;
  // The sentence of the model that does not hold, or null.
  const char *check() const;

 private:
  struct Node {
    Node(lock::Output &output, size_t index, Settings &&settings_,
         std::span<const uint8_t, 16> random, uint64_t seed)
        : settings(std::move(settings_)), client(settings, random, seed, output, index) {}

    const Settings settings;
    lock::LockClient client;
    bool is_redrawn = false;  // its channel is to change
  };
  // A slot on its way to the node that the map names, or to the unrouted client.
  struct Move {
    uint16_t slot;
    size_t from;
    Nanos not_before;
  };
  // Redirects of one slot in a row.
  struct Bounce {
    int count = 0;
    Nanos since = 0;
    timing::Backoff pause = timing::kServerRetry;
  };

  // A request for the health of all primaries, and a part of it for each.
  struct Check {
    std::shared_ptr<lock::Request> request;
    std::vector<std::shared_ptr<lock::Request>> parts;
  };

  // Reports of the clients.
  void send(size_t node, std::span<const std::string_view> argv) override {
    output_.send(node, argv);
  }
  void finished(lock::Request &request) override {
    if (!is_part(request)) output_.finished(request);
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
  bool continues_list(const std::shared_ptr<lock::Request> &request) override;

  lock::LockClient &client(size_t node) { return nodes_[node]->client; }
  lock::LockClient &unrouted() { return nodes_.front()->client; }
  // Where the locks of the slot are now.
  size_t home_of(uint16_t slot) const;
  size_t home_of(const lock::Request &request) const;
  // Where the locks of the slot belong.
  size_t node_of(uint16_t slot);
  size_t node_at(uint16_t number);
  bool is_allowed(const HostPort &server) const;
  Outcome check_name(const lock::Request &request) const;
  void route(const std::shared_ptr<lock::Request> &request, Nanos now);
  void route_or_fail(const std::shared_ptr<lock::Request> &request, Nanos now) noexcept;
  void refuse(lock::Request &request, size_t primary);
  static std::string not_allowed(const HostPort &server) {
    return ": cluster_hosts must name all nodes of the cluster (got a node at " +
           quoted(server.host) + ")";
  }
  void start_list(const std::shared_ptr<lock::Request> &request, Nanos now);
  bool goes_on(lock::Listing &listing) const;
  void start_check(const std::shared_ptr<lock::Request> &request, Nanos now);
  void end_checks();
  bool is_part(const lock::Request &request) const;
  Check *check_of(const lock::Request &request);
  size_t next_primary(size_t number) const;
  uint16_t first_slot(size_t primary) const {
    return map_.ranges_of(static_cast<uint16_t>(primary)).front().first;
  }
  void finish(lock::Request &request, Status status, std::string_view message);

  void want_map(Nanos now);
  void note_lost_channels();
  bool is_moving(uint16_t slot) const;
  void plan_move(uint16_t slot, size_t from, Nanos not_before);
  void plan_moves(size_t from, Nanos now);
  void place_unrouted(Nanos now);
  std::string why_homeless() const;
  void carry_out_plans(Nanos now) noexcept;
  void carry_out_moves(Nanos now);
  bool carry_out(Move &move, Nanos now);
  void redraw(size_t node, Nanos now);

  const Settings &settings_;
  lock::Output &output_;
  std::array<uint8_t, 16> random_{};
  Entropy entropy_;
  uint64_t last_id_ = 0;  // of the tokens of all clients
  // By number. A node never goes, and keeps its number.
  std::vector<std::unique_ptr<Node>> nodes_;
  std::map<uint16_t, size_t> node_numbers_;  // by number of the server in the map
  SlotMap map_;
  bool is_map_known_ = false;
  bool is_map_wanted_ = false;
  bool is_map_read_ = false;  // an attempt is under way
  bool is_shut_ = false;
  Nanos map_at_ = 0;  // when it may be read
  timing::Backoff map_pause_ = timing::kReconnect;
  std::vector<Move> moves_;
  std::map<uint16_t, Bounce> bounces_;
  std::map<uint16_t, HostPort> recent_;  // redirects since the attempt to read the map began
  Nanos plans_due_ = kNever;             // when to try again what failed for want of memory
  std::vector<std::shared_ptr<lock::Request>> lists_;  // to be continued at another node
  std::vector<Check> checks_;
  Nanos now_ = 0;  // of the event
};

}  // namespace redlatch::cluster
