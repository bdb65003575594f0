// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// CompositeClient: adds leases of several names, flights, and observers of elections to a lock
// client, of one server or of a cluster.
// Calls about a single name are passed to that client. It has no mutex, thread, socket or clock;
// one thread at a time calls it.
//
// A part is an acquire of that client, which queues, renews and releases it, and reports a loss.
// Composite decides what to ask for next.
//
// start() throws only before it has started anything.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/reply.h"
#include "base/status.h"
#include "composite/composite.h"
#include "compound/compound.h"
#include "election/observer.h"
#include "flight/flight.h"
#include "lock/service.h"

namespace redlatch::composite {

class CompositeClient final : public lock::LockService, private lock::Output {
 public:
  // The output outlives the client. inner() has to be set before anything else.
  explicit CompositeClient(lock::Output &output) : output_(output), table_(output) {}

  Inner &inner() { return inner_; }
  const Inner &inner() const { return inner_; }
  // Where the inner client reports.
  lock::Output &reports() { return *this; }

  void start(const std::shared_ptr<lock::Request> &request, Nanos now) override;
  Status cancel(lock::Request &request, Nanos now) override;
  void release_async(lock::Lease &lease, Nanos now) override;
  void shut_down(Nanos now) override;
  void give_up() override;
  const lock::Request *waits_for_itself(const lock::Request &request) const override;
  void on_timer(Nanos now) override;
  Nanos next_due() const override;

  const std::string &channel(size_t node) const override { return inner_->channel(node); }
  bool needs_identity() const override { return inner_->needs_identity(); }
  size_t drained_count() const override { return inner_->drained_count(); }
  [[nodiscard]] bool begin_connect(size_t node, Nanos now) override {
    return inner_->begin_connect(node, now);
  }
  void connect_soon(size_t node, Nanos now) override { inner_->connect_soon(node, now); }
  void on_connected(size_t node, const ServerFacts &facts, Nanos now) override {
    pass(&LockService::on_connected, now, node, facts);
  }
  void on_connect_failed(size_t node, const Outcome &why, Nanos now) override {
    pass(&LockService::on_connect_failed, now, node, why);
  }
  void on_disconnected(size_t node, Nanos now) noexcept override {
    tell_observers(std::nullopt);
    pass(&LockService::on_disconnected, now, node);
  }
  void on_reply(size_t node, const Reply &reply, Nanos now) override {
    pass(&LockService::on_reply, now, node, reply);
  }
  void on_push(size_t node, std::string_view message, Nanos now) override {
    pass(&LockService::on_push, now, node, message);
  }
  void on_messages_heard(size_t node, Nanos now) override { inner_->on_messages_heard(node, now); }
  [[nodiscard]] bool begin_side_connect(size_t node, Nanos now) override {
    return inner_->begin_side_connect(node, now);
  }
  void on_side_connected(size_t node, Nanos now) override {
    pass(&LockService::on_side_connected, now, node);
  }
  void on_side_connect_failed(size_t node, const Outcome &why, Nanos now) override {
    pass(&LockService::on_side_connect_failed, now, node, why);
  }
  void on_side_disconnected(size_t node, Nanos now) noexcept override {
    pass(&LockService::on_side_disconnected, now, node);
  }
  void on_side_reply(size_t node, const Reply &reply, Nanos now) override {
    pass(&LockService::on_side_reply, now, node, reply);
  }
  void on_invalidated(size_t node, std::optional<std::string_view> key, Nanos now) override {
    tell_observers(key);
    pass(&LockService::on_invalidated, now, node, key);
  }
  std::vector<HostPort> known_servers() const override { return inner_->known_servers(); }
  void on_slots_read(std::span<const protocol::SlotRange> ranges, Nanos now) override {
    pass(&LockService::on_slots_read, now, ranges);
  }
  void on_unsubscribed(size_t node, Nanos now) override {
    pass(&LockService::on_unsubscribed, now, node);
  }
  void check_later(size_t node, Nanos due) override { inner_->check_later(node, due); }
  size_t in_flight_count(size_t node) const override { return inner_->in_flight_count(node); }
  bool expects_push() const override { return observer_count_ > 0 || inner_->expects_push(); }
  bool is_outstanding() const override { return observer_count_ > 0 || inner_->is_outstanding(); }
  void describe(std::span<NodeStatus> nodes, Nanos now) override { inner_->describe(nodes, now); }

 private:
  // Reports of the inner client.
  void finished(lock::Request &request) override;
  void lease_ended(lock::Lease &lease) override;
  void lease_moved(lock::Lease &lease) override;
  void lease_recalled(lock::Lease &lease) override;
  void queued(lock::Request &request) override;
  void send(size_t node, std::span<const std::string_view> argv) override {
    output_.send(node, argv);
  }
  void drop_link(size_t node) override { output_.drop_link(node); }
  void send_on_side(size_t node, std::span<const std::string_view> argv) override {
    output_.send_on_side(node, argv);
  }
  void send_on_messages(size_t node, std::span<const std::string_view> argv) override {
    output_.send_on_messages(node, argv);
  }
  void drop_side(size_t node) override { output_.drop_side(node); }
  void warn(std::string_view text) noexcept override { output_.warn(text); }
  void open_node(size_t node, const Settings &settings) override {
    output_.open_node(node, settings);
  }
  void defect_found(std::string_view what) noexcept override { output_.defect_found(what); }
  void node_validated(size_t node, const Outcome &why) override {
    output_.node_validated(node, why);
  }
  void health_found(size_t node, const protocol::HealthFacts &facts,
                    const protocol::LockTrial *trial) override {
    output_.health_found(node, facts, trial);
  }

  // An event, which may mark composites.
  template <class Event, class... What>
  void pass(Event event, Nanos now, const What &...what) {
    ((*inner_).*event)(what..., now);
    table_.review_marked(now);
  }
  void tell_observers(std::optional<std::string_view> key) noexcept {
    if (observer_count_ == 0) return;
    table_.for_each([&](compound::Compound &each) { each.on_key_changed(key); });
  }
  // nullptr: it is not held.
  Composite *holder_of(const lock::Lease &lease) const;
  void refuse(lock::Request &request, const Outcome &why);
  void start_command(const std::shared_ptr<lock::Request> &request, Nanos now);

  lock::Output &output_;
  size_t observer_count_ = 0;  // above the table, which has them
  compound::Table table_;
  flight::Rooms rooms_{inner_, table_};
  Inner inner_;  // last: it ends first, and its reports are ignored then
  bool is_shut_ = false;
};

}  // namespace redlatch::composite
