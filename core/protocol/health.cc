// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "protocol/health.h"

#include <array>
#include <optional>

#include "base/text.h"
#include "protocol/answer.h"

namespace redlatch::protocol {

namespace {

using Trial = HealthFacts::Trial;

// Plain questions, each with one part: several names in one INFO or CONFIG GET are an error before
// Redis 7.0.
enum class Kind : uint8_t { kTime, kInfo, kSetting, kWait, kTracking, kClusterInfo };
struct Question {
  Kind kind;
  std::string_view part;
};
constexpr std::array kQuestions = {
    Question{Kind::kTime, ""},  // first, for its round trip
    Question{Kind::kInfo, "clients"},
    Question{Kind::kInfo, "memory"},
    Question{Kind::kInfo, "persistence"},
    Question{Kind::kInfo, "replication"},
    Question{Kind::kInfo, "cluster"},
    Question{Kind::kSetting, "maxmemory-policy"},
    Question{Kind::kSetting, "timeout"},
    Question{Kind::kSetting, "min-replicas-to-write"},
    Question{Kind::kSetting, "cluster-require-full-coverage"},
    Question{Kind::kSetting, "appendonly"},
    Question{Kind::kSetting, "appendfsync"},
    Question{Kind::kSetting, "save"},
    Question{Kind::kWait, ""},
    Question{Kind::kTracking, ""},
    Question{Kind::kClusterInfo, ""},  // last: only nodes of a cluster are asked
};

void write(Command &out, const Question &question) {
  switch (question.kind) {
    case Kind::kTime:
      out.add("TIME");
      return;
    case Kind::kInfo:
      out.add("INFO").add(question.part);
      return;
    case Kind::kSetting:
      out.add("CONFIG").add("GET").add(question.part);
      return;
    case Kind::kWait:
      // For no replica: it is answered at once.
      out.add("WAIT").add(int64_t{0}).add(int64_t{1});
      return;
    case Kind::kTracking:
      // Changes nothing; a server without tracking does not know it either.
      out.add("CLIENT").add("TRACKINGINFO");
      return;
    case Kind::kClusterInfo:
      out.add("CLUSTER").add("INFO");
      return;
  }
}

// The field of an INFO as a number of at least 0.
void read_number(std::string_view info, std::string_view field, std::optional<int64_t> &out) {
  int64_t number = 0;
  if (parse_number(info_value(info, field), number) && number >= 0) out = number;
}

void read_switch(std::string_view text, std::string_view on, std::string_view off,
                 std::optional<bool> &out) {
  if (text == on) out = true;
  if (text == off) out = false;
}

HealthFacts::Tried tried(const Reply &reply) {
  const Refusal refusal = refusal_of(reply);
  if (!refusal) return {Trial::kWorks, ""};
  if (refusal.kind == Refusal::Kind::kTransient) return {Trial::kNotTried, refusal.message};
  const bool is_denied = refusal.kind == Refusal::Kind::kDenied;
  return {is_denied ? Trial::kNotAllowed : Trial::kRefused, refusal.message};
}

}  // namespace

size_t HealthCheck::question_count() const {
  static_assert(kQuestions.back().kind == Kind::kClusterInfo);
  return kQuestions.size() - (is_of_cluster_ ? 0 : 1);
}

void HealthCheck::ask(const Send &send) const {
  for (size_t i = 0; i < question_count(); i++) {
    Command command;
    write(command, kQuestions[i]);
    send(command);
  }
}

bool HealthCheck::is_over() const { return answer_count_ == question_count(); }

void HealthCheck::on_reply(const Reply &reply, Nanos asked_at, Nanos now) {
  if (is_over()) return;
  const Question &question = kQuestions[answer_count_++];
  switch (question.kind) {
    case Kind::kTime:
      facts_.round_trip = now - asked_at;
      facts_.clock = decode_time(reply);
      if (facts_.clock) *facts_.clock -= asked_at + *facts_.round_trip / 2;
      return;
    case Kind::kInfo:
      if (reply.is_error() && facts_.info_refusal.empty()) {
        facts_.info_refusal = refusal_of(reply).message;
      }
      return read_info(reply);
    case Kind::kSetting:
      if (reply.is_error() && facts_.config_refusal.empty()) {
        facts_.config_refusal = refusal_of(reply).message;
      }
      return read_setting(question.part, reply);
    case Kind::kWait:
      facts_.wait = tried(reply);
      return;
    case Kind::kTracking:
      facts_.tracking = tried(reply);
      return;
    case Kind::kClusterInfo:
      if (!reply.is_error()) facts_.cluster_state = info_value(reply.text(), "cluster_state");
      return;
  }
}

// Sections have no field in common.
void HealthCheck::read_info(const Reply &reply) {
  if (reply.is_error()) return;
  const std::string_view info = reply.text();
  read_number(info, "connected_clients", facts_.client_count);
  read_number(info, "maxclients", facts_.max_clients);
  read_number(info, "used_memory", facts_.used_memory);
  read_number(info, "maxmemory", facts_.max_memory);
  read_number(info, "connected_slaves", facts_.replica_count);
  read_switch(info_value(info, "aof_enabled"), "1", "0", facts_.has_log);
  read_switch(info_value(info, "cluster_enabled"), "1", "0", facts_.is_cluster);
  if (const auto policy = info_value(info, "maxmemory_policy"); !policy.empty()) {
    facts_.policy = policy;
  }
  if (const auto role = info_value(info, "role"); !role.empty()) facts_.role = role;
}

void HealthCheck::read_setting(std::string_view name, const Reply &reply) {
  if (reply.count() < 2 || reply.at(0).text() != name) return;
  const std::string_view value = reply.at(1).text();
  const bool is_text = reply.at(1).kind == Reply::Kind::kText;
  const auto number = [&](std::optional<int64_t> &out) {
    int64_t found = 0;
    if (parse_number(value, found) && found >= 0) out = found;
  };
  if (name == "maxmemory-policy" && !value.empty()) facts_.policy = value;
  if (name == "timeout") number(facts_.idle_timeout_s);
  if (name == "min-replicas-to-write") number(facts_.min_replicas);
  if (name == "cluster-require-full-coverage") {
    read_switch(value, "yes", "no", facts_.needs_all_slots);
  }
  if (name == "appendonly") read_switch(value, "yes", "no", facts_.has_log);
  if (name == "appendfsync" && is_text) facts_.log_sync = value;
  if (name == "save" && is_text) facts_.snapshots = value;
}

}  // namespace redlatch::protocol
