// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "protocol/server_identity.h"

#include <algorithm>
#include <compare>

#include "base/text.h"
#include "protocol/answer.h"

namespace redlatch::protocol {

namespace {

struct Version {
  int major = 0;
  int minor = 0;
  auto operator<=>(const Version &) const = default;
};

constexpr Version kOldestRedis{6, 2};
constexpr Version kOldestValkey{7, 2};
constexpr Version kShardedChannels{7, 0};

Version parse_version(std::string_view text) {
  Version version;
  const size_t dot = text.find('.');
  if (dot == std::string_view::npos || !parse_number(text.substr(0, dot), version.major)) return {};
  const std::string_view rest = text.substr(dot + 1);
  if (!parse_number(rest.substr(0, rest.find('.')), version.minor)) return {};
  return version;
}

NodeRole role_of(std::string_view word) {
  if (word == "master") return NodeRole::kPrimary;
  return word == "replica" || word == "slave" ? NodeRole::kReplica : NodeRole::kUnknown;
}

}  // namespace

bool Greeting::is_supported() const {
  return parse_version(version) >= (server == "valkey" ? kOldestValkey : kOldestRedis);
}

bool Greeting::has_sharded_channels() const { return parse_version(version) >= kShardedChannels; }

std::string Greeting::text() const {
  return (server == "valkey" ? "Valkey " : "Redis ") + clean(version);
}

Greeting read_hello(const Reply &reply) {
  Greeting greeting;
  bool is_of_cluster = false;
  for (size_t i = 0; i + 1 < reply.count(); i += 2) {
    const std::string_view field = reply.at(i).text();
    const std::string_view value = reply.at(i + 1).text();
    if (field == "server") greeting.server = value;
    if (field == "version") greeting.version = value;
    if (field == "role") greeting.role = role_of(value);
    if (field == "proto" && reply.at(i + 1).integer == 2) greeting.is_resp2 = true;
    if (field == "mode" && value == "cluster") is_of_cluster = true;
    if (field == "mode" && value == "sentinel") greeting.is_sentinel = true;
  }
  if (is_of_cluster) greeting.role = NodeRole::kClusterMember;
  return greeting;
}

Greeting read_info(std::string_view info) {
  Greeting greeting;
  const std::string_view mode = info_value(info, "redis_mode");
  greeting.is_sentinel = mode == "sentinel";
  if (mode == "cluster") greeting.role = NodeRole::kClusterMember;
  greeting.server = "valkey";
  greeting.version = info_value(info, "valkey_version");
  if (!greeting.version.empty()) return greeting;
  greeting.server = "redis";
  greeting.version = info_value(info, "redis_version");
  return greeting;
}

bool is_about_hello(std::string_view error) {
  if (error.starts_with("NOPROTO")) return true;
  const std::string_view code = error.substr(0, error.find(' '));
  const bool is_code =
      std::all_of(code.begin(), code.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  if (is_code && code != "ERR") return false;
  for (const std::string_view word :
       {"nknown command", "nsupported", "not supported", "syntax error", "nvalid request"}) {
    if (error.find(word) != error.npos) return true;
  }
  return false;
}

void read_server_info(std::string_view info, ServerFacts &facts) {
  facts.run_id = info_value(info, "run_id");
  facts.is_cluster_member = info_value(info, "redis_mode") == "cluster";
  if (facts.is_cluster_member) facts.role = NodeRole::kClusterMember;
  const bool has_uptime = parse_number(info_value(info, "uptime_in_seconds"), facts.age.uptime_s);
  if (!has_uptime || facts.age.uptime_s < 0) facts.run_id.clear();
}

void read_replication_info(std::string_view info, ServerFacts &facts) {
  const std::string_view word = info_value(info, "role");
  facts.is_replica = word == "slave";
  const NodeRole role = role_of(word);
  const bool is_known = role != NodeRole::kUnknown;
  if (is_known && facts.role != NodeRole::kClusterMember) facts.role = role;
}

bool read_time(const Reply &reply, Nanos now, ServerAge &age) {
  const auto time = decode_time(reply);
  if (!time) return false;
  age.round_trip = now - age.asked_at;
  age.clock = *time - (age.asked_at + age.round_trip / 2);
  return true;
}

}  // namespace redlatch::protocol
