// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// LockClient: the client of one server, or of the nodes of a cluster. It has the timers and the
// servers, and gives events to its parts: Redirects, Locks, Cleanups, Leases, Waiters and Requests.
// It has no mutex, thread, socket or clock.
//
// In: calls of users, events of the connections, the time. Out: commands, finished requests and
// ended leases through an Output, and the time at which it wants to be called again. Everything is
// called by one thread at a time. core/runtime is its shell; a simulator can be another.
//
// It throws only std::bad_alloc, and only before anything has changed that a later event would not
// put right: what could not be sent is tried again by a timer, and a caller that catches it inside
// an event of a connection drops the connection, which every state here survives.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/random.h"
#include "base/reply.h"
#include "base/settings.h"
#include "base/status.h"
#include "lock/call.h"
#include "lock/cleanups.h"
#include "lock/leases.h"
#include "lock/lock_state.h"
#include "lock/locks.h"
#include "lock/placement.h"
#include "lock/redirects.h"
#include "lock/requests.h"
#include "lock/results.h"
#include "lock/server.h"
#include "lock/service.h"
#include "lock/timer_queue.h"
#include "lock/waiters.h"
#include "operate/names.h"
#include "session/session.h"

namespace redlatch::lock {

class LockClient final : public LockService, private operate::Names::Owner {
 public:
  // `random` makes the channel of its first server. Settings and output outlive the client, and
  // know the server as number `node`.
  LockClient(const Settings &settings, std::span<const uint8_t, 16> random, uint64_t seed,
             Output &output, size_t node = 0);
  ~LockClient() override;

  const std::string &channel(size_t node) const override { return at(node).channel.name(); }

  void start(const std::shared_ptr<Request> &request, Nanos now) override {
    start(request, servers_.front(), now);
  }
  // A request about a lock that the client has goes to the server of that lock.
  void start(const std::shared_ptr<Request> &request, Server &server, Nanos now);
  Status cancel(Request &request, Nanos now) override;
  void release_async(Lease &lease, Nanos now) override { waiters_.release_async(lease, now); }
  void shut_down(Nanos now) override;
  void give_up() override;
  size_t drained_count() const override;
  bool is_shut() const { return is_shut_; }
  // True if nothing is left of what users asked for.
  bool is_idle() const;

  [[nodiscard]] bool begin_connect(size_t node, Nanos now) override;
  void on_connected(size_t node, const ServerFacts &facts, Nanos now) override;
  void on_connect_failed(size_t node, const Outcome &why, Nanos now) override;
  void on_disconnected(size_t node, Nanos now) noexcept override;
  void on_reply(size_t node, const Reply &reply, Nanos now) override;
  void on_push(size_t node, std::string_view message, Nanos now) override;
  void on_messages_heard(size_t node, Nanos now) override {
    at(node).session.on_messages_heard(now);
  }
  void on_invalidated(size_t node, std::optional<std::string_view> key, Nanos now) override {
    waiters_.on_invalidated(at(node), key, now);
  }
  void check_later(size_t node, Nanos due) override;
  [[nodiscard]] bool begin_side_connect(size_t node, Nanos now) override {
    return at(node).confirmations.begin_connect(now);
  }
  void on_side_connected(size_t node, Nanos now) override {
    at(node).confirmations.on_connected(now);
  }
  void on_side_connect_failed(size_t node, const Outcome &why, Nanos now) override {
    at(node).confirmations.on_connect_failed(why, now);
  }
  void on_side_disconnected(size_t node, Nanos now) noexcept override {
    at(node).confirmations.on_disconnected(now);
  }
  void on_side_reply(size_t node, const Reply &reply, Nanos now) override {
    at(node).confirmations.on_reply(reply, now);
  }

  void on_timer(Nanos now) override;
  Nanos next_due() const override;

  // ---- the nodes of a cluster (moving.cc)
  void place_by(Placement &placement) { redirects_.place_by(placement); }
  // Its number is the next one. None is removed but the last one, before anything was asked of it.
  Server &add_server(const Settings &settings, std::span<const uint8_t, 16> random);
  void remove_last_server() { servers_.pop_back(); }
  Server &at(size_t node) { return servers_[index_of(node)]; }
  const Server &at(size_t node) const { return servers_[index_of(node)]; }
  // Nothing about the slot is sent to any server until resume().
  void hold_back(uint16_t slot) { redirects_.hold_back(slot); }
  const std::set<uint16_t> &held_back() const { return redirects_.held_back(); }
  // Those that commands under way are about.
  std::set<uint16_t> busy_slots() const;
  // Those of all locks that something is to be done with, and where these are.
  Moves slots();
  // Holds the slots back, which are not busy. Their locks are at these servers from now on: what is
  // held keeps its token; what waits gets a token of the new server, and keeps its ticket. Throws
  // std::bad_alloc, and then no lock has moved.
  void move(const Moves &moves, Nanos now);
  // Sends what is to be done about locks of the slots, if the connection is up; else connects soon.
  void resume(const Moves &moves, Nanos now);
  // Uses another channel from the next connection on. Called without a connection; throws
  // std::bad_alloc, and then nothing has changed.
  void change_channel(Server &server, const std::string &cid, Nanos now);
  // A request at `server` that is about no lock: it is started at another. nullptr: none.
  std::shared_ptr<Request> take_request(const Server &server) {
    return requests_.take_request(server);
  }
  // Asks `server`, which may have the keys already, behind ASKING. @return whether it was sent;
  // else a connection that is down is wanted.
  bool ask(Server &server, const std::shared_ptr<DelegatedCommand> &delegated, Nanos now);

  // ---- for users of several clients
  const Server &first_server() const { return servers_.front(); }
  const Locks &locks() const { return locks_; }
  // For Leases::drop() and release_after_notice() only.
  Leases &leases() { return leases_; }

  size_t in_flight_count(size_t node) const override { return at(node).session.in_flight().size(); }
  bool expects_push() const override;
  bool is_outstanding() const override;
  const Request *waits_for_itself(const Request &request) const override {
    return waiters_.waits_for_itself(request) ? &request : nullptr;
  }
  void describe(std::span<NodeStatus> nodes, Nanos now) override;

  void connect_soon(size_t node, Nanos now) override { at(node).session.connect_soon(now); }
  // Ask again for what `request` waits for.
  void poll(Request &request, Nanos now) {
    if (request.record != nullptr) waiters_.ask(*request.record, now);
  }

 private:
  using Phase = TokenRecord::Phase;

  // lock_client.cc: requests and replies; connecting.cc: the connections
  // Ends a request of a caller before its answer, and undoes what it began as far as it can.
  void end_request(Request &request, Status status, std::string_view message, Nanos now);
  void on_request_due(Request &request, Nanos now) noexcept;
  Outcome why_late(const Request &request) const noexcept;
  void fail_all(Server &server, Status status, std::string_view message, Nanos now);
  void tend(Server &server, Nanos now);
  void resume(TokenRecord &record, Nanos now);
  size_t index_of(size_t node) const {
    assert(node >= servers_.front().node && node <= servers_.back().node);
    return node - servers_.front().node;
  }
  void resume_records(Server &server, const Moves *slots, Nanos now);

  // operate::Names::Owner
  void on_name(operate::NameQuery &asked, std::string_view name, Nanos now) override;

  Output &output_;
  Entropy entropy_;
  bool is_shut_ = false;
  TimerQueue timers_;
  Results results_;
  Redirects redirects_;
  Locks locks_;
  // Each of the first two is the owner of the next one, and so is constructed before it.
  Waiters waiters_;
  Leases leases_;
  Cleanups cleanups_;
  Requests requests_;
  std::deque<Server> servers_;
};

}  // namespace redlatch::lock
