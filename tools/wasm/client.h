// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Client: a LockService and the connections to its nodes, in a host with one thread that never
// blocks. Like core/runtime and the simulator it drives the objects of core/driver, and decides
// nothing about locks. Not supported: TLS, password files, health checks.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/settings.h"
#include "base/status.h"
#include "driver/drain.h"
#include "driver/log.h"
#include "link.h"
#include "lock/service.h"

namespace redlatch::wasm {

class Client final : private lock::Output, private driver::Log {
 public:
  // Throws std::bad_alloc.
  Client(std::vector<Settings> nodes, const std::optional<QuorumSettings> &quorum);
  ~Client() override;

  // @return why it does not support these nodes, or ok.
  static Outcome check(std::span<const Settings> nodes);

  // ---- calls of users, each with a number. Arguments were checked. Throw std::bad_alloc, and then
  // the call was not started
  void acquire(int32_t number, std::string_view name, const lock::AcquireOptions &options,
               int64_t wait_ms, Nanos now);
  // `lease`: the number of the call that acquired it.
  void release(int32_t number, int32_t lease, Nanos now);
  void cancel(int32_t number, Nanos now);
  void shut_down(Nanos now);
  // All callers have their results, and the client can be destroyed.
  bool is_shut() const { return is_shut_; }
  // From the application. After watch_credentials() host_ask() asks for them.
  void give_credentials(std::string_view user, std::string_view password, Nanos now);
  void watch_credentials() { shared_.credentials.begin_watch(); }

  // ---- events, beside those of each Wire
  void on_time(Nanos now);
  // After std::bad_alloc in an event: connecting again repeats what was due.
  void drop_all(Nanos now) noexcept;
  // After each of the calls and events.
  void settle(Nanos now);
  Nanos next_due() const;

 private:
  struct Call;
  // lock::Output
  void send(size_t node, std::span<const std::string_view> argv) override {
    links_[node].append(argv);
  }
  void drop_link(size_t node) override { links_[node].drop(); }
  void send_on_messages(size_t node, std::span<const std::string_view> argv) override {
    links_[node].append_to_messages(argv);
  }
  void send_on_side(size_t node, std::span<const std::string_view> argv) override {
    links_[node].side().append(argv);
  }
  void drop_side(size_t node) override { links_[node].side().drop(); }
  void warn(std::string_view text) noexcept override { add(driver::LogLevel::kWarning, text); }
  void defect_found(std::string_view what) noexcept override {
    add(driver::LogLevel::kError, what);
  }
  void finished(lock::Request &request) override;
  void lease_ended(lock::Lease &lease) override;
  void open_node(size_t node, const Settings &settings) override {
    links_.emplace_back(shared_, settings, node);
  }
  // driver::Log
  void add(driver::LogLevel level, std::string_view text) noexcept override;

  void start(const std::shared_ptr<Call> &call, Nanos now);
  void note_end(Call &call);
  void tend_drain(Nanos now);

  Shared shared_;
  std::deque<Link> links_;
  std::map<int32_t, std::shared_ptr<Call>> calls_;
  Call *ended_ = nullptr;  // a list: settle() erases them, outside the service
  std::optional<driver::Drain> drain_;
  bool is_shut_ = false;
};

}  // namespace redlatch::wasm
