// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "protocol/health_findings.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/text.h"

namespace redlatch::protocol {

namespace {

using Trial = HealthFacts::Trial;

constexpr size_t kMaxWord = 64;  // of a server's word in a finding

std::string word(std::string_view text) { return clean(cut(text, kMaxWord)); }

std::string in_ms(Nanos duration) {
  const int64_t tenths = duration / (kMs / 10);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " ms";
}

// "1 replica", "2 replicas".
std::string count_of(int64_t count, const std::string &thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

// Judges the facts of one server.
class Judge {
 public:
  Judge(const HealthFacts &facts, const HealthContext &context)
      : facts_(facts), context_(context) {}

  std::vector<Finding> findings() const {
    return {reachable(),   version(),     role(),         replicas(), eviction(), memory(),
            connections(), persistence(), idle_timeout(), cluster(),  clock(),    pushes(),
            channels(),    tracking(),    wait(),         scripts()};
  }

 private:
  static Finding ok(std::string id, std::string seen) {
    return {std::move(id), FindingLevel::kOk, std::move(seen), ""};
  }
  // No danger, but good to know.
  static Finding note(std::string id, std::string seen, std::string advice) {
    return {std::move(id), FindingLevel::kOk, std::move(seen), std::move(advice)};
  }
  static Finding unknown(std::string id, std::string why) {
    return {std::move(id), FindingLevel::kUnknown, std::move(why), ""};
  }
  static Finding warn(std::string id, std::string seen, std::string advice) {
    return {std::move(id), FindingLevel::kWarn, std::move(seen), std::move(advice)};
  }
  static Finding fail(std::string id, std::string seen, std::string advice) {
    return {std::move(id), FindingLevel::kFail, std::move(seen), std::move(advice)};
  }
  // Not known, for want of an answer of `command`.
  static Finding no_answer(std::string id, const std::string &command, const std::string &refusal) {
    return unknown(std::move(id), refusal.empty() ? command + " does not say it"
                                                  : command + " was refused: " + word(refusal));
  }
  Finding no_info(std::string id) const {
    return no_answer(std::move(id), "INFO", facts_.info_refusal);
  }
  Finding no_setting(std::string id) const {
    return no_answer(std::move(id), "CONFIG GET", facts_.config_refusal);
  }
  bool is_replica() const { return facts_.role == "slave" || facts_.role == "replica"; }

  Finding reachable() const;
  Finding version() const;
  Finding role() const;
  Finding replicas() const;
  Finding eviction() const;
  Finding memory() const;
  Finding connections() const;
  Finding persistence() const;
  Finding node_persistence() const;
  Finding idle_timeout() const;
  Finding cluster() const;
  Finding clock() const;
  Finding pushes() const;
  Finding channels() const;
  Finding tracking() const;
  Finding wait() const;
  Finding scripts() const;

  const HealthFacts &facts_;
  const HealthContext &context_;
};

Finding Judge::reachable() const {
  if (!facts_.round_trip) return ok("reachable", "connected");
  return ok("reachable", "answers in " + in_ms(*facts_.round_trip));
}

Finding Judge::version() const {
  if (context_.server.version.empty()) return unknown("version", "the server does not say it");
  return ok("version", context_.server.version);
}

Finding Judge::role() const {
  const bool is_known_replica = context_.server.role == NodeRole::kReplica;
  if (is_replica() || (facts_.role.empty() && is_known_replica)) {
    return fail("role", "this server is a replica: it refuses writes", "connect to its primary");
  }
  if (facts_.role == "master" || context_.server.role == NodeRole::kPrimary) {
    return ok("role", "primary");
  }
  return no_info("role");
}

Finding Judge::replicas() const {
  if (is_replica()) return unknown("replicas", "a replica does not say it of its primary");
  if (!facts_.replica_count) return no_info("replicas");
  const auto count = count_of(*facts_.replica_count, "replica");
  if (*facts_.replica_count == 0) return ok("replicas", "no replica");
  if (!facts_.min_replicas) {
    auto finding = no_setting("replicas");
    finding.seen = count + "; " + finding.seen;
    return finding;
  }
  const auto seen = count + ", min-replicas-to-write " + std::to_string(*facts_.min_replicas);
  const bool is_ignored = context_.server.version.starts_with("Redis 6.");
  if (*facts_.min_replicas > 0 && is_ignored) {
    return fail("replicas",
                seen + ", which Redis 6 ignores in scripts: a failover may grant a lock twice",
                "use Redis 7.0 or later, or a Redlock");
  }
  if (*facts_.min_replicas > 0) return ok("replicas", seen);
  return fail("replicas", seen + ": a failover may grant a lock twice",
              "set min-replicas-to-write 1, or use a Redlock");
}

Finding Judge::eviction() const {
  if (facts_.policy.empty()) {
    auto finding = no_setting("eviction");
    if (!facts_.info_refusal.empty()) finding.seen = no_info("eviction").seen;
    return finding;
  }
  const auto seen = "maxmemory-policy is " + word(facts_.policy);
  if (facts_.policy == "noeviction") return ok("eviction", seen);
  return warn("eviction", seen + ": keys of locks may be evicted, and such a lock is lost",
              "set maxmemory-policy noeviction, or use a server of its own for locks");
}

Finding Judge::memory() const {
  if (!facts_.max_memory || !facts_.used_memory) return no_info("memory");
  if (*facts_.max_memory == 0) return ok("memory", "no maxmemory");
  constexpr double kMost = 1000;
  const double share =
      100 * static_cast<double>(*facts_.used_memory) / static_cast<double>(*facts_.max_memory);
  const auto percent = static_cast<int64_t>(std::min(share, kMost));
  const auto seen = std::to_string(percent) + "% of maxmemory is used";
  if (percent < 90) return ok("memory", seen);
  const std::string advice = "raise maxmemory, or free memory";
  if (percent < 100) return warn("memory", seen, advice);
  const bool is_refusing = facts_.policy == "noeviction";
  return fail("memory", seen + (is_refusing ? ": writes are refused" : ": keys are evicted"),
              advice);
}

Finding Judge::connections() const {
  if (!facts_.client_count || !facts_.max_clients || *facts_.max_clients == 0) {
    return no_info("connections");
  }
  const auto seen = std::to_string(*facts_.client_count) + " of " +
                    std::to_string(*facts_.max_clients) + " connections are used";
  const bool is_near =
      static_cast<double>(*facts_.client_count) >= 0.9 * static_cast<double>(*facts_.max_clients);
  if (!is_near) return ok("connections", seen);
  return warn("connections", seen, "raise maxclients, or close connections");
}

// On one server nothing depends on it but locks over a restart, which docs/guarantees.md names.
Finding Judge::persistence() const {
  if (!facts_.has_log) return no_info("persistence");
  const bool is_guarded = !context_.is_node || context_.is_guarded;
  if (!is_guarded) return node_persistence();
  if (*facts_.has_log) return ok("persistence", "append-only file");
  std::string seen = "no append-only file: a crash forgets locks";
  if (facts_.snapshots) {
    seen = facts_.snapshots->empty() ? "nothing is written to disk: a restart forgets all locks"
                                     : "snapshots only: a crash forgets locks since the last one";
  }
  return note("persistence", std::move(seen), "set appendonly yes to keep locks over a restart");
}

Finding Judge::node_persistence() const {
  const std::string advice =
      "set appendonly yes and appendfsync always, or use a restart_guard on all clients";
  if (!*facts_.has_log) {
    return fail("persistence",
                "appendonly is off on a node without a restart guard: after a restart it may vote "
                "twice",
                advice);
  }
  if (!facts_.log_sync) return no_setting("persistence");
  const auto seen = "append-only file, appendfsync " + word(*facts_.log_sync);
  if (*facts_.log_sync == "always") return ok("persistence", seen);
  return fail("persistence", seen + ": without a restart guard a node that crashed may vote twice",
              advice);
}

Finding Judge::idle_timeout() const {
  if (!facts_.idle_timeout_s) return no_setting("idle-timeout");
  const int64_t seconds = *facts_.idle_timeout_s;
  if (seconds == 0) return ok("idle-timeout", "idle connections are kept");
  return warn("idle-timeout",
              "timeout is " + std::to_string(seconds) +
                  ": a connection that is idle for that many seconds is cut",
              "set timeout 0: a cut connection has to be made again before the next lock");
}

Finding Judge::cluster() const {
  const bool is_known_member = context_.server.role == NodeRole::kClusterMember;
  if (!facts_.is_cluster && !is_known_member) return no_info("cluster");
  if (!facts_.is_cluster.value_or(is_known_member)) return ok("cluster", "no cluster");
  const bool has_state = !facts_.cluster_state.empty();
  if (has_state && facts_.cluster_state != "ok") {
    return fail("cluster",
                "cluster_state is " + word(facts_.cluster_state) + ": no lock can be taken",
                "see CLUSTER INFO and CLUSTER NODES there: a slot has no server, or most primaries "
                "are away");
  }
  if (!facts_.needs_all_slots) return no_setting("cluster");
  if (!*facts_.needs_all_slots) return ok("cluster", "served also when a slot has no server");
  return warn("cluster",
              "cluster-require-full-coverage is yes: one slot without a server stops all locks",
              "set cluster-require-full-coverage no");
}

Finding Judge::clock() const {
  if (!facts_.clock) return unknown("clock", "TIME was refused, or is no time");
  const Nanos difference = *facts_.clock - context_.wall;
  const bool is_ahead = difference >= 0;
  const Nanos size = std::abs(difference);
  const auto seen = "the server's clock is " +
                    (size < 10 * 1000 * kMs ? in_ms(size) : in_seconds(size / kMs)) +
                    (is_ahead ? " ahead of" : " behind") + " that of this host";
  if (size <= 1000 * kMs) return ok("clock", seen);
  return warn("clock", seen,
              "synchronize both clocks: times are shown wrong; leases after a failover, and in a "
              "cluster, and fences after a failover need clocks of servers that agree");
}

Finding Judge::pushes() const {
  if (context_.server.is_push_trusted) return ok("pushes", "a waiter is notified of its grant");
  return warn("pushes", "waiters poll, which is slower: " + context_.server.why_not_trusted,
              "allow the user to subscribe and publish on the channels of the namespace, or "
              "connect without the proxy");
}

Finding Judge::channels() const {
  return ok("channels", context_.server.is_sharded ? "sharded (SPUBLISH)" : "plain (PUBLISH)");
}

Finding Judge::tracking() const {
  const auto &tried = facts_.tracking;
  if (tried.trial == Trial::kWorks && context_.server.can_track) {
    return ok("tracking", "the server notifies of changed keys");
  }
  if (tried.trial == Trial::kWorks) return unknown("tracking", "the connection uses RESP2");
  if (tried.trial != Trial::kRefused)
    return no_answer("tracking", "CLIENT TRACKINGINFO", tried.why);
  return warn("tracking", "CLIENT TRACKING is not possible: " + word(tried.why),
              "nothing, or use another server: waiters behind another lock library poll");
}

Finding Judge::wait() const {
  if (facts_.wait.trial == Trial::kWorks) return ok("wait", "WAIT works");
  if (facts_.wait.trial != Trial::kRefused || is_replica()) {
    return no_answer("wait", "WAIT", facts_.wait.why);
  }
  return warn("wait", "WAIT is not possible: " + word(facts_.wait.why),
              "nothing, or use another server: confirmation by replicas needs it");
}

// The probe of the handshake is such a script.
Finding Judge::scripts() const {
  if (!context_.server.is_push_trusted) return unknown("scripts", "not known without pushes");
  return ok("scripts", "a script may publish to a channel that it does not declare");
}

constexpr std::string_view kAllow = "allow the user what `tools/acl.py` lists";

void add_trial(std::vector<Finding> &findings, const LockTrial &trial) {
  const auto add = [&](std::string id, const std::string &why, FindingLevel level,
                       const std::string &works, const std::string &fails) {
    const bool works_there = why.empty();
    const std::string advice = trial.is_denied() ? std::string(kAllow) : "see the answer";
    findings.push_back({std::move(id), works_there ? FindingLevel::kOk : level,
                        works_there ? works : fails + ": " + clean(cut(why, 200)),
                        works_there ? "" : advice});
  };
  add("lock", trial.why_no_lock(), FindingLevel::kFail, "taken, extended, released and removed",
      "a lock could not be taken, extended, released and removed");
  add("handover", trial.why_no_handover(), FindingLevel::kFail,
      trial.is_notified() ? "a waiter was granted the lock and notified"
                          : "a waiter was granted the lock",
      "a waiter was not granted the lock");
  add("inspection", trial.why_no_inspection(), FindingLevel::kWarn, "a lock can be inspected",
      "a lock cannot be inspected");
  add("listing", trial.why_no_list(), FindingLevel::kWarn, "locks can be listed",
      "locks cannot be listed");
}

}  // namespace

std::vector<Finding> findings_of(const HealthFacts &facts, const LockTrial *trial,
                                 const HealthContext &context) {
  auto findings = Judge(facts, context).findings();
  if (trial != nullptr) add_trial(findings, *trial);
  return findings;
}

}  // namespace redlatch::protocol
