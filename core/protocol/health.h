// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The health of a server: HealthCheck asks for what endangers locks there and reads the replies,
// which health_findings.h judges. No reply is an error: a refused question is a fact, or not known.
// No clock, no socket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/reply.h"
#include "protocol/command.h"

namespace redlatch::protocol {

// The replies of one server. An empty field is not known.
struct HealthFacts {
  std::optional<Nanos> round_trip;
  std::optional<Nanos> clock;  // its wall clock minus the clock of `now`

  // INFO; the first two also CONFIG GET.
  std::string policy;  // of eviction
  std::optional<bool> has_log;
  std::optional<int64_t> used_memory, max_memory;
  std::optional<int64_t> client_count, max_clients;
  std::string role;
  std::optional<int64_t> replica_count;
  std::optional<bool> is_cluster;
  std::string cluster_state;  // CLUSTER INFO: ok or fail

  // CONFIG GET
  std::optional<int64_t> idle_timeout_s, min_replicas;
  std::optional<std::string> snapshots, log_sync;  // save, appendfsync
  std::optional<bool> needs_all_slots;

  // Commands that were tried.
  enum class Trial : uint8_t { kNotTried, kWorks, kNotAllowed, kRefused };
  struct Tried {
    Trial trial = Trial::kNotTried;
    std::string why;  // of kNotAllowed and kRefused
  };
  Tried wait, tracking;

  std::string info_refusal, config_refusal;  // the first of each
};

// One pass of questions, sent together. Replies come in their order.
class HealthCheck {
 public:
  using Send = std::function<void(Command &command)>;

  HealthCheck() = default;
  // A node of a cluster is asked for the state of the cluster, too.
  explicit HealthCheck(bool is_of_cluster) : is_of_cluster_(is_of_cluster) {}

  // Sends all questions.
  void ask(const Send &send) const;
  // Takes the next reply. `asked_at`: when the questions were sent.
  void on_reply(const Reply &reply, Nanos asked_at, Nanos now);
  // True if all replies have come.
  bool is_over() const;
  const HealthFacts &facts() const { return facts_; }

 private:
  void read_info(const Reply &reply);
  void read_setting(std::string_view name, const Reply &reply);

  size_t question_count() const;

  bool is_of_cluster_ = false;
  HealthFacts facts_;
  size_t answer_count_ = 0;
};

}  // namespace redlatch::protocol
