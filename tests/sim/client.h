// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Client: the product's engine in a simulated process, as core/client is its shell in a real one:
// it connects, delivers, flushes and keeps the engine's timers.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "network.h"
#include "process.h"
#include "scene.h"

namespace redlatch::sim {

class Client : public Process, public ClientEnd, private engine::Outlet {
 public:
  // `slot`: its place among the clients; `life`: how many stood there before.
  Client(Scene &scene, int slot, uint64_t life);
  ~Client() override;

  // Calls of users.
  void start(const RequestPtr &request, std::function<void()> done) override;
  void cancel(engine::Request &request) override;
  void abandon(engine::Lease &lease) override;
  bool is_held(const engine::Lease &lease) const override;
  // Its process ends in good order.
  void shut_down();

  // Faults.
  void pause(Nanos until);
  bool is_paused() const override { return scene_.schedule.now() < paused_until_; }
  Nanos paused_until() const override { return paused_until_; }
  void forget_connection(Network::Ending ending);  // its process is gone
  bool is_connected() const { return is_up_; }
  bool is_busy() const { return is_up_ && engine_->in_flight_count(0) > 0; }
  bool is_waiting() const { return engine_->expects_push(); }
  uint64_t link() const { return link_; }

  int slot() const { return slot_; }
  const Clock &clock() const { return clock_; }
  const std::string &channel() const { return engine_->channel(); }
  const engine::Engine &engine() const { return *engine_; }

  void received(uint64_t link, Messages messages) override;
  void closed(uint64_t link) override;

 private:
  // engine::Outlet
  void send(size_t node, std::span<const std::string_view> argv) override;
  void finished(engine::Request &request) override;
  void lease_ended(engine::Lease &lease) override;
  void drop_link(size_t) override { is_dropped_ = true; }

  Nanos now() const { return clock_.read(scene_.schedule.now()); }
  template <class Call>
  void call(const Call &call);
  template <class Action>
  void later(Nanos delay, Action action);
  void settle();
  void tell(const char *what, const engine::Request &request);
  void disconnect();
  void connect();
  void greet();
  void finish_connect(uint64_t link);
  void fail_connect(const std::string &why);
  void arm();
  void on_time(uint64_t number);
  void take(Messages messages);
  void resume();

  Scene &scene_;
  const int slot_;
  const Clock clock_;
  Random random_;
  Settings settings_;
  std::unique_ptr<engine::Engine> engine_;
  const std::shared_ptr<bool> is_alive_;  // events outlive the client

  uint64_t link_ = 0;
  bool is_up_ = false;  // on_connected() was the last word of the connection
  bool is_dropped_ = false;
  bool is_connecting_ = false;
  CommandList out_;
  Nanos last_reply_at_ = 0;
  bool is_resuming_ = false;
  Nanos timer_at_ = kNever;  // the event that is pending
  uint64_t timer_number_ = 0;
  Nanos paused_until_ = 0;
  std::vector<Messages> inbox_;  // while paused
  bool is_time_due_ = false;     // while paused
  bool is_closed_due_ = false;   // while paused
  std::map<engine::Request *, std::pair<RequestPtr, std::function<void()>>> calls_;
  std::vector<std::function<void()>> done_;
  std::set<std::string> given_up_;  // tokens that were given back or lost by this call
};

}  // namespace redlatch::sim
