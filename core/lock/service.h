// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// LockService: the interface that a runtime or a simulator calls. Output: the interface that the
// service calls back. A service locks on one server or several, its nodes, numbered from 0. It has
// no mutex, thread, socket or clock; one thread at a time calls it.
//
// It throws only std::bad_alloc. A caller that catches that inside an event of a connection drops
// this connection, inside on_timer() all of them: what was due is done when connected again.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/node_status.h"
#include "base/reply.h"
#include "base/server_facts.h"
#include "base/settings.h"
#include "base/status.h"
#include "lock/request.h"
#include "protocol/health.h"
#include "protocol/lock_trial.h"
#include "protocol/slots.h"
#include "session/transport.h"

namespace redlatch::lock {

// The failure of what is possible with one server only, such as "listing locks".
inline Outcome needs_one_server(std::string_view what) {
  return failure(Status::kUnsupported, words::needs_one_server(what));
}

// Where the actions of a service go. No call comes back into the service from here.
class Output : public session::Transport {
 public:
  virtual void finished(Request &request) = 0;
  virtual void lease_ended(Lease &lease) = 0;
  // It waits in the queue of its server. For parts of a request only.
  virtual void queued(Request &) {}
  // Another client asks its holder to finish: recall_count and recall_reason have changed.
  virtual void lease_recalled(Lease &) {}
  // Its deadline has changed.
  virtual void lease_moved(Lease &) {}
  // A server is to be connected from now on, as number `node`: the next one. The settings outlive
  // the service.
  virtual void open_node(size_t, const Settings &) {}
  // A machine met an event that its state does not allow: a defect of this library.
  virtual void defect_found(std::string_view) noexcept {}
  // A fault of a connected node was found, or is gone.
  virtual void node_validated(size_t, const Outcome &) {}
  // A node has answered all questions about its health. A trial is made on request only.
  virtual void health_found(size_t, const protocol::HealthFacts &, const protocol::LockTrial *) {}
};

class LockService {
 public:
  virtual ~LockService() = default;
  LockService(const LockService &) = delete;
  LockService &operator=(const LockService &) = delete;

  // The channel to subscribe to. It changes only while the node is not connected.
  virtual const std::string &channel(size_t node) const = 0;
  // True if a fresh connection asks the server for its run id, age and role.
  virtual bool needs_identity() const { return false; }

  // Calls of users. Arguments were checked. Results arrive by Output::finished(), maybe at once.
  // kUnsupported for calls that this service cannot serve.
  virtual void start(const std::shared_ptr<Request> &request, Nanos now) = 0;
  // @return kCancelled, or the earlier result.
  virtual Status cancel(Request &request, Nanos now) = 0;
  // No caller will release `lease` any more: it is released in the background.
  virtual void release_async(Lease &lease, Nanos now) = 0;
  // No further work is taken; held leases are released.
  virtual void shut_down(Nanos now) = 0;
  // Answer the callers that still wait for a release: the limit has passed.
  virtual void give_up() = 0;
  // How many nodes have answered all that was given back, or need not be waited for.
  virtual size_t drained_count() const = 0;

  // Events of the connection to a node.
  // @return true to connect now; then one of the next two follows.
  [[nodiscard]] virtual bool begin_connect(size_t node, Nanos now) = 0;
  // The server has moved: an attempt to connect that waits for its time need not wait.
  virtual void connect_soon(size_t, Nanos) {}
  virtual void on_connected(size_t node, const ServerFacts &facts, Nanos now) = 0;
  virtual void on_connect_failed(size_t node, const Outcome &why, Nanos now) = 0;
  virtual void on_disconnected(size_t node, Nanos now) noexcept = 0;
  virtual void on_reply(size_t node, const Reply &reply, Nanos now) = 0;
  virtual void on_push(size_t node, std::string_view message, Nanos now) = 0;
  // Something has come on the connection for messages, if they have one of their own.
  virtual void on_messages_heard(size_t, Nanos) {}
  // A second connection to a connected node, for commands that block those behind them; opened when
  // it is needed, and dropped when it is not. No message comes there.
  // @return true to connect now; then one of the next two follows.
  [[nodiscard]] virtual bool begin_side_connect(size_t, Nanos) { return false; }
  virtual void on_side_connected(size_t, Nanos) {}
  virtual void on_side_connect_failed(size_t, const Outcome &, Nanos) {}
  virtual void on_side_disconnected(size_t, Nanos) noexcept {}
  virtual void on_side_reply(size_t, const Reply &, Nanos) {}
  // A tracked key has changed (reported once); nullopt: all of them.
  virtual void on_invalidated(size_t node, std::optional<std::string_view> key, Nanos now) = 0;

  // ---- of a cluster. Its node 0 is connected when the slots were read: from one of these servers,
  // the first that answers; on_slots_read() or on_connect_failed() follows.
  virtual std::vector<HostPort> known_servers() const { return {}; }
  virtual void on_slots_read(std::span<const protocol::SlotRange>, Nanos) {}
  // The server does not deliver messages on the channel any more.
  virtual void on_unsubscribed(size_t, Nanos) {}

  // Ask `node`, which is connected, for its health at `due`, in the background: unless the
  // connection ends before, or ended twice while it was asked. Never repeated.
  virtual void check_later(size_t node, Nanos due) = 0;

  // Time.
  virtual void on_timer(Nanos now) = 0;
  virtual Nanos next_due() const = 0;

  // How many commands to `node` have no answer yet.
  virtual size_t in_flight_count(size_t node) const = 0;
  // Something may arrive from a node without having been asked for.
  virtual bool expects_push() const = 0;
  // True if an answer or a message may come from some node.
  virtual bool is_outstanding() const = 0;
  // `request`, or a part of it, if the thread that waits for it has that lock itself; else nullptr.
  virtual const Request *waits_for_itself(const Request &request) const = 0;
  // Add what only the service knows about its nodes. Clock differences are to the clock of `now`.
  virtual void describe(std::span<NodeStatus>, Nanos) {}

 protected:
  LockService() = default;
};

}  // namespace redlatch::lock
