// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// NotedEvents: a service that notes its events. NotedLines: a log that keeps its lines.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "driver/log.h"
#include "driver/node_connection.h"
#include "lock/service.h"

namespace redlatch::driver {

class NotedEvents final : public lock::LockService {
 public:
  std::vector<std::string> events;
  NodeConnection *to_drop = nullptr;

  void on_push(size_t, std::string_view message, Nanos) override {
    events.push_back("push " + std::string(message));
  }
  void on_invalidated(size_t, std::optional<std::string_view> key, Nanos) override {
    events.push_back("changed " + std::string(key.value_or("all")));
  }
  void on_slots_read(std::span<const protocol::SlotRange> ranges, Nanos) override {
    events.push_back("slots: " + std::to_string(ranges.size()));
  }
  void on_unsubscribed(size_t, Nanos) override { events.emplace_back("unsubscribed"); }

  const std::string &channel(size_t) const override { return channel_; }
  void start(const std::shared_ptr<lock::Request> &, Nanos) override {}
  Status cancel(lock::Request &, Nanos) override { return Status::kOk; }
  void release_async(lock::Lease &, Nanos) override {}
  void shut_down(Nanos) override {}
  void give_up() override {}
  size_t drained_count() const override { return 0; }
  bool begin_connect(size_t, Nanos) override { return false; }
  void on_connected(size_t, const ServerFacts &, Nanos) override {
    events.emplace_back("connected");
    if (to_drop != nullptr) to_drop->drop();
  }
  void on_connect_failed(size_t, const Outcome &why, Nanos) override {
    events.push_back("failed: " + why.message);
  }
  void on_disconnected(size_t, Nanos) noexcept override {}
  void on_reply(size_t, const Reply &, Nanos) override { events.emplace_back("reply"); }
  void check_later(size_t, Nanos due) override {
    EXPECT_GE(due, 100 * kMs);
    EXPECT_LT(due, 500 * kMs);
    events.emplace_back("to be checked");
  }
  void on_timer(Nanos) override {}
  Nanos next_due() const override { return kNever; }
  std::vector<HostPort> known_servers() const override { return {{"h", "1"}, {"g", "1"}}; }
  size_t in_flight_count(size_t) const override { return 0; }
  bool expects_push() const override { return false; }
  bool is_outstanding() const override { return false; }
  const lock::Request *waits_for_itself(const lock::Request &) const override { return nullptr; }

 private:
  std::string channel_ = "c";
};

class NotedLines final : public Log {
 public:
  std::vector<std::string> lines;
  void add(LogLevel, std::string_view text) noexcept override { lines.emplace_back(text); }
};

inline Settings settings_of_h() {
  Settings settings;
  settings.host = "h";
  settings.port = "1";
  return settings;
}

}  // namespace redlatch::driver
