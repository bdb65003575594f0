// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The leader of an election, as the server knows it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "handles.h"

namespace redlatch::cli {

struct Leader {
  Leader() = default;
  // `info`: an answer of rl_leader() or rl_leader_watch().
  explicit Leader(const rl_info* info);

  std::string id;  // Empty = there is no leader, and the other fields have no meaning.
  std::int64_t term = 0;
  std::int64_t since_ms = 0;
};

// Reports each change of the leader, in a thread of its own.
class LeaderObserver {
 public:
  using Listener = std::function<void(const Leader&)>;

  // Reports the present leader first, if there is one. `client` must outlive this.
  LeaderObserver(rl_client* client, std::string name, Listener listener);
  LeaderObserver(const LeaderObserver&) = delete;
  LeaderObserver& operator=(const LeaderObserver&) = delete;
  // Ends the thread, which has then called the listener for the last time.
  ~LeaderObserver();

 private:
  void observe();
  [[nodiscard]] rl_request* start(std::int64_t seen);
  void forget_request();
  void pause();

  rl_client* const client_;
  const std::string name_;
  const Listener listener_;
  std::mutex mutex_;  // Guards what follows.
  std::condition_variable stopped_;
  bool is_stopping_ = false;
  rl_request* request_ = nullptr;
  std::thread thread_;
};

}  // namespace redlatch::cli
