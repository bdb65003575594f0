// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "runtime/identity.h"

#include <vector>

#include "base/limits.h"
#include "base/text.h"
#include "wire/answer.h"
#include "wire/command.h"

namespace redlatch::runtime {

Outcome ask_identity(io::Connection &connection, const Settings &settings, int wake_fd,
                     engine::ServerFacts &facts) {
  wire::Command server;
  wire::Command replication;
  wire::Command time;
  server.add("INFO").add("server");
  replication.add("INFO").add("replication");
  time.add("TIME");
  std::string bytes;
  for (const wire::Command *command : {&server, &replication, &time}) {
    io::append_command(bytes, command->argv());
  }
  std::vector<io::ReplyPtr> replies;
  const Nanos sent_at = boot_now();
  auto outcome = connection.exchange(bytes, 3, sent_at + settings.timeout, wake_fd, replies);
  if (!outcome.ok()) return outcome;
  const Nanos now = boot_now();
  for (const auto &reply : replies) {
    if (!reply->is_error()) continue;
    const auto refusal = wire::refusal_of(*reply);
    const bool will_pass = refusal.kind == wire::Refusal::Kind::kTransient;
    facts.why_unknown = failure(refusal.status(), refusal.message);
    return will_pass ? failure(refusal.status(), settings.address() + ": " + refusal.message)
                     : Outcome{};
  }
  int64_t seconds = 0;
  int64_t micros = 0;
  const std::string_view run_id = wire::info_value(replies[0]->text(), "run_id");
  const bool is_clear =
      !run_id.empty() &&
      parse_number(wire::info_value(replies[0]->text(), "uptime_in_seconds"), facts.age.uptime_s) &&
      parse_number(replies[2]->at(0).text(), seconds) &&
      parse_number(replies[2]->at(1).text(), micros) && facts.age.uptime_s >= 0 && seconds >= 0 &&
      seconds < kMaxServerMs / 1000 && micros >= 0 && micros < 1'000'000;
  facts.is_replica = wire::info_value(replies[1]->text(), "role") == "slave";
  facts.is_cluster_member = wire::info_value(replies[0]->text(), "redis_mode") == "cluster";
  if (!is_clear) {
    facts.why_unknown = failure(Status::kUnsupported, "INFO without run_id or uptime_in_seconds");
    return {};
  }
  facts.run_id = run_id;
  facts.age.round_trip = now - sent_at;
  facts.age.told_at = sent_at;
  facts.age.clock = seconds * 1000 * kMs + micros * 1000 - (sent_at + facts.age.round_trip / 2);
  return {};
}

}  // namespace redlatch::runtime
