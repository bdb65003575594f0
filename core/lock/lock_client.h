// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// LockClient: the client of one server. It has the timers and the connection, and gives events to
// its parts: Redirects, Locks, Cleanups, Leases, Waiters and Requests. It has no mutex, thread,
// socket or clock.
//
// In: calls of users, events of the connection, the time. Out: commands, finished requests and
// ended leases through an Output, and the time at which it wants to be called again. Everything is
// called by one thread at a time. core/runtime is its shell; a simulator can be another.
//
// It throws only std::bad_alloc, and only before anything has changed that a later event would not
// put right: what could not be sent is tried again by a timer, and a caller that catches it inside
// an event of the connection drops the connection, which every state here survives.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

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
  // `random` makes the client's id. Settings and output outlive the client, and know it as number
  // `node`.
  LockClient(const Settings &settings, std::span<const uint8_t, 16> random, uint64_t seed,
             Output &output, size_t node = 0);
  ~LockClient() override;

  const std::string &channel(size_t) const override { return server_.channel.name(); }

  void start(const std::shared_ptr<Request> &request, Nanos now) override;
  Status cancel(Request &request, Nanos now) override;
  void release_async(Lease &lease, Nanos now) override { waiters_.release_async(lease, now); }
  void shut_down(Nanos now) override;
  void give_up() override;
  size_t drained_count() const override;
  // True if nothing is left of what users asked for.
  bool is_idle() const { return !has_work() && locks_.names().empty(); }

  [[nodiscard]] bool begin_connect(size_t node, Nanos now) override;
  void on_connected(size_t node, const ServerFacts &facts, Nanos now) override;
  void on_connect_failed(size_t node, const Outcome &why, Nanos now) override;
  void on_disconnected(size_t node, Nanos now) noexcept override;
  void on_reply(size_t node, const Reply &reply, Nanos now) override;
  void on_push(size_t node, std::string_view message, Nanos now) override;
  void on_messages_heard(size_t, Nanos now) override { server_.session.on_messages_heard(now); }
  void on_invalidated(size_t, std::optional<std::string_view> key, Nanos now) override {
    waiters_.on_invalidated(server_, key, now);
  }
  void check_later(size_t node, Nanos due) override;
  [[nodiscard]] bool begin_side_connect(size_t, Nanos now) override {
    return server_.confirmations.begin_connect(now);
  }
  void on_side_connected(size_t, Nanos now) override { server_.confirmations.on_connected(now); }
  void on_side_connect_failed(size_t, const Outcome &why, Nanos now) override {
    server_.confirmations.on_connect_failed(why, now);
  }
  void on_side_disconnected(size_t, Nanos now) noexcept override {
    server_.confirmations.on_disconnected(now);
  }
  void on_side_reply(size_t, const Reply &reply, Nanos now) override {
    server_.confirmations.on_reply(reply, now);
  }

  void on_timer(Nanos now) override;
  Nanos next_due() const override;

  // ---- one node of a cluster, among other such clients of the same application (moving.cc)
  // Tokens of all these clients take their numbers from `ids`, so that a lock can change its client
  // and keep its tokens. Called before the first request.
  void number_by(uint64_t &ids) { locks_.number_by(ids); }
  // Nothing about the slot is sent to the server any more, until another client has taken it over.
  void hold_back(uint16_t slot) { redirects_.hold_back(slot); }
  const std::set<uint16_t> &held_back() const { return redirects_.held_back(); }
  // True if no command about the slot is under way.
  bool is_at_rest(uint16_t slot) const;
  // Those of all locks that this client has something to do with.
  std::set<uint16_t> slots() const;
  // Takes all locks of the slot over from `from`, where it is at rest: what is held keeps its
  // token; what waits gets a token of this client, and keeps its ticket. nullopt: all locks, and
  // all else that was asked of `from`; neither client is connected then. Throws std::bad_alloc, and
  // then nothing has changed.
  void take_over(LockClient &from, std::optional<uint16_t> slot, Nanos now);
  // Sends what take_over() has brought, if the connection is up; else connects soon.
  void resume(uint16_t slot, Nanos now);
  // Uses another channel from the next connection on. Called without a connection; throws
  // std::bad_alloc, and then nothing has changed.
  void change_channel(const std::string &cid, Nanos now);
  // Another connection has the channel: it is changed before the next one.
  bool is_channel_taken() const { return server_.channel.is_taken(); }
  // True if `request`, which is about no lock, was started here.
  bool has(const Request &request) const { return requests_.has(request); }
  // A request that is about no lock: it is started elsewhere. nullptr: no such request.
  std::shared_ptr<Request> take_request() { return requests_.take_request(); }
  // Connects although nothing needs the connection yet.
  void want_connection(Nanos now);
  // Asks the server, which may have the keys already, behind ASKING. @return whether it was sent.
  bool run(const std::shared_ptr<DelegatedCommand> &delegated, Nanos now);

  // ---- the parts, for users of several clients
  const session::Session &session() const { return server_.session; }
  const Locks &locks() const { return locks_; }
  // For Leases::drop() and release_after_notice() only.
  Leases &leases() { return leases_; }

  size_t in_flight_count(size_t) const override { return server_.session.in_flight().size(); }
  bool expects_push() const override { return locks_.waiting_count() > 0; }
  bool is_outstanding() const override {
    return !server_.session.in_flight().empty() || expects_push();
  }
  bool waits_for_itself(const Request &request) const override {
    return waiters_.waits_for_itself(request);
  }
  bool has_work() const {
    return !locks_.records().empty() || !requests_.is_empty() || server_.is_wanted;
  }
  // For a client that never connects, while something else is tried.
  void set_trying(bool is_on) { server_.session.set_trying(is_on); }
  // True if an attempt to connect is under way, or is due.
  bool is_connecting(Nanos now) const {
    return server_.session.is_connecting() || (has_work() && server_.session.connect_at() <= now);
  }
  void describe(std::span<NodeStatus> nodes, Nanos now) override {
    nodes.front().clock_difference = server_.clock.offset(now);
  }

  void connect_soon(size_t, Nanos now) override { server_.session.connect_soon(now); }
  // "; holder: " and the name of a client; empty if not known.
  std::string holder_text(std::string_view cid) const { return server_.names.holder_text(cid); }
  // Ask again for what `request` waits for.
  void poll(Request &request, Nanos now) {
    if (request.record != nullptr) waiters_.ask(*request.record, now);
  }

 private:
  using Phase = TokenRecord::Phase;

  // lock_client.cc: requests and replies; connecting.cc: the connection
  // Ends a request of a caller before its answer, and undoes what it began as far as it can.
  void end_request(Request &request, Status status, std::string_view message, Nanos now);
  void on_request_due(Request &request, Nanos now) noexcept;
  Outcome why_late(const Request &request) const;
  void fail_all(Status status, std::string_view message, Nanos now);

  // moving.cc: the nodes of a cluster
  void take(LockClient &from, std::optional<uint16_t> slot, Nanos now);
  void resume(TokenRecord &record, Nanos now);
  void resume_records(std::optional<uint16_t> slot, Nanos now);

  // operate::Names::Owner
  void on_name(operate::NameQuery &asked, std::string_view name, Nanos now) override;

  const Settings &settings_;
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
  Server server_;
};

}  // namespace redlatch::lock
