// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: the health of a server is judged from what it answered and from nothing else; a refusal or
// nonsense is "unknown" and never an error. A client asks in the background once for a connection,
// stops after a connection that does not survive it, and a request gets its answer or a reason.
// Method: made replies, by the words of each question.
#include "protocol/health_findings.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lock_client_world.h"

namespace redlatch {
namespace {

using protocol::HealthCheck;
using protocol::HealthContext;
using protocol::LockTrial;

constexpr Nanos kSecond = 1000 * kMs;

using Answers = std::map<std::string, std::function<MadeReply()>>;

std::string joined(std::span<const std::string_view> argv) {
  std::string words;
  for (const auto word : argv) words += (words.empty() ? "" : " ") + std::string(word);
  return words;
}

MadeReply setting(const std::string &name, const std::string &value) {
  return MadeReply::list(MadeReply::text(name), MadeReply::text(value));
}

// Those of a server on which all is well.
Answers good_answers() {
  Answers answers;
  const auto info = [&](const std::string &section, const std::string &text) {
    answers["INFO " + section] = [text] { return MadeReply::text(text); };
  };
  const auto config = [&](const std::string &name, const std::string &value) {
    answers["CONFIG GET " + name] = [=] { return setting(name, value); };
  };
  answers["TIME"] = [] { return MadeReply::list(MadeReply::text("5"), MadeReply::text("0")); };
  info("clients", "# Clients\r\nconnected_clients:7\r\nmaxclients:100\r\n");
  info("memory", "used_memory:10\r\nmaxmemory:100\r\nmaxmemory_policy:noeviction\r\n");
  info("persistence", "aof_enabled:1\r\n");
  info("replication", "role:master\r\nconnected_slaves:2\r\n");
  info("cluster", "cluster_enabled:0\r\n");
  config("maxmemory-policy", "noeviction");
  config("timeout", "0");
  config("min-replicas-to-write", "1");
  config("cluster-require-full-coverage", "yes");
  config("appendonly", "yes");
  config("appendfsync", "always");
  config("save", "");
  answers["WAIT 0 1"] = [] { return MadeReply::integer(0); };
  answers["CLIENT TRACKINGINFO"] = [] { return MadeReply::list(); };
  answers["CLUSTER INFO"] = [] { return MadeReply::text("cluster_state:ok\r\n"); };
  return answers;
}

class HealthTest : public ::testing::Test {
 protected:
  void on_info(const std::string &section, const std::string &text) {
    answers_["INFO " + section] = [text] { return MadeReply::text(text); };
  }
  void on_config(const std::string &name, const std::string &value) {
    answers_["CONFIG GET " + name] = [=] { return setting(name, value); };
  }
  void refuse(const std::string &words, const std::string &error) {
    for (auto &[question, answer] : answers_) {
      if (question.starts_with(words)) answer = [error] { return MadeReply::error(error); };
    }
  }
  std::vector<Finding> findings() {
    HealthCheck check(is_of_cluster_);
    check.ask([&](protocol::Command &command) {
      EXPECT_FALSE(check.is_over());
      const auto answer = answers_.find(joined(command.argv()));
      ASSERT_NE(answer, answers_.end()) << joined(command.argv());
      check.on_reply(answer->second().get(), 0, 2 * kMs);
    });
    EXPECT_TRUE(check.is_over());
    check.on_reply(MadeReply::error("ERR one more").get(), 0, 0);
    return findings_of(check.facts(), nullptr, context_);
  }
  Finding find(const std::string &id) {
    for (const Finding &finding : findings()) {
      if (finding.id == id) return finding;
    }
    ADD_FAILURE() << "no finding " << id;
    return {};
  }
  void expect(const std::string &id, FindingLevel level, const std::string &words) {
    const Finding finding = find(id);
    EXPECT_EQ(finding.level, level) << id << ": " << finding.seen;
    EXPECT_NE(finding.seen.find(words), std::string::npos) << id << ": " << finding.seen;
    EXPECT_EQ(finding.is_bad(), !finding.advice.empty()) << id;
  }

  // No danger, with an advice all the same.
  void expect_note(const std::string &id, const std::string &words) {
    const Finding finding = find(id);
    EXPECT_EQ(finding.level, FindingLevel::kOk) << id << ": " << finding.seen;
    EXPECT_NE(finding.seen.find(words), std::string::npos) << id << ": " << finding.seen;
    EXPECT_FALSE(finding.advice.empty()) << id;
  }

  Answers answers_ = good_answers();
  bool is_of_cluster_ = false;
  ServerFacts server_ = [] {
    ServerFacts facts;
    facts.version = "Redis 7.4.1";
    facts.can_track = facts.is_sharded = true;
    return facts;
  }();
  HealthContext context_{server_, 5 * kSecond - kMs, false, true};
};

TEST_F(HealthTest, a_cluster_that_is_down_is_a_failure) {
  is_of_cluster_ = true;
  on_info("cluster", "cluster_enabled:1\r\n");
  expect("cluster", FindingLevel::kWarn, "cluster-require-full-coverage is yes");
  on_config("cluster-require-full-coverage", "no");
  expect("cluster", FindingLevel::kOk, "served also when a slot has no server");
  answers_["CLUSTER INFO"] = [] { return MadeReply::text("cluster_state:fail\r\n"); };
  expect("cluster", FindingLevel::kFail, "cluster_state is fail");
  refuse("CLUSTER INFO", "NOPERM no");
  expect("cluster", FindingLevel::kOk, "served also");
}

TEST_F(HealthTest, a_healthy_server_has_no_findings) {
  for (const Finding &finding : findings()) {
    EXPECT_EQ(finding.level, FindingLevel::kOk) << finding.id << ": " << finding.seen;
    EXPECT_EQ(finding.advice, "") << finding.id;
  }
}

TEST_F(HealthTest, each_dangerous_setting_is_found) {
  on_config("maxmemory-policy", "allkeys-lru");
  expect("eviction", FindingLevel::kWarn, "allkeys-lru");
  on_info("memory", "used_memory:100\r\nmaxmemory:100\r\nmaxmemory_policy:noeviction\r\n");
  expect("memory", FindingLevel::kFail, "100% of maxmemory");
  on_info("memory", "used_memory:95\r\nmaxmemory:100\r\n");
  expect("memory", FindingLevel::kWarn, "95%");
  on_info("clients", "connected_clients:90\r\nmaxclients:100\r\n");
  expect("connections", FindingLevel::kWarn, "90 of 100");
  on_config("min-replicas-to-write", "0");
  expect("replicas", FindingLevel::kFail, "2 replicas, min-replicas-to-write 0");
  on_config("min-replicas-to-write", "1");
  expect("replicas", FindingLevel::kOk, "min-replicas-to-write 1");
  server_.version = "Redis 6.2.14";
  expect("replicas", FindingLevel::kFail, "ignores in scripts");
  on_config("timeout", "5");
  expect("idle-timeout", FindingLevel::kWarn, "timeout is 5");
  on_info("cluster", "cluster_enabled:1\r\n");
  expect("cluster", FindingLevel::kWarn, "one slot");
  on_info("replication", "role:slave\r\nconnected_slaves:0\r\n");
  expect("role", FindingLevel::kFail, "replica");
  refuse("WAIT", "ERR unknown command 'WAIT'");
  expect("wait", FindingLevel::kUnknown, "WAIT was refused");  // as of a replica
  on_info("replication", "role:master\r\nconnected_slaves:0\r\n");
  expect("wait", FindingLevel::kWarn, "not possible");
  refuse("CLIENT", "ERR unknown subcommand");
  expect("tracking", FindingLevel::kWarn, "unknown subcommand");
  server_.is_push_trusted = false;
  server_.why_not_trusted = "counted wrongly";
  expect("pushes", FindingLevel::kWarn, "counted wrongly");
  expect("scripts", FindingLevel::kUnknown, "pushes");
}

TEST_F(HealthTest, persistence_is_required_only_of_a_node_without_a_guard) {
  on_config("appendonly", "no");
  on_info("persistence", "aof_enabled:0\r\n");
  expect_note("persistence", "nothing is written to disk");
  context_.is_node = true;
  expect_note("persistence", "nothing is written to disk");
  context_.is_guarded = false;
  expect("persistence", FindingLevel::kFail, "appendonly is off");
  on_config("appendonly", "yes");
  expect("persistence", FindingLevel::kOk, "appendfsync always");
  on_config("appendfsync", "everysec");
  expect("persistence", FindingLevel::kFail, "everysec");
}

TEST_F(HealthTest, the_server_clock_is_compared_at_half_the_round_trip) {
  expect("clock", FindingLevel::kOk, "0.0 ms ahead");
  expect("reachable", FindingLevel::kOk, "2.0 ms");
  context_.wall += 2 * kSecond;
  expect("clock", FindingLevel::kWarn, "2000.0 ms behind");
  context_.wall -= 60 * kSecond;
  expect("clock", FindingLevel::kWarn, "ahead");
}

TEST_F(HealthTest, a_refused_command_makes_the_finding_unknown) {
  refuse("INFO", "NOPERM User lock has no permissions to run the 'info' command");
  refuse("CONFIG", "NOPERM User lock has no permissions to run the 'config|get' command");
  refuse("TIME", "NOPERM User lock has no permissions to run the 'time' command");
  refuse("WAIT", "NOPERM User lock has no permissions to run the 'wait' command");
  refuse("CLIENT", "NOPERM User lock has no permissions to run the 'client' command");
  for (const std::string id : {"role", "replicas", "eviction", "memory", "connections",
                               "persistence", "idle-timeout", "cluster", "wait", "tracking"}) {
    expect(id, FindingLevel::kUnknown, "was refused: NOPERM");
  }
  expect("clock", FindingLevel::kUnknown, "TIME");
}

TEST_F(HealthTest, info_or_config_alone_is_enough) {
  refuse("INFO", "NOPERM no");
  expect("eviction", FindingLevel::kOk, "noeviction");
  answers_ = good_answers();
  refuse("CONFIG", "NOPERM no");
  expect("eviction", FindingLevel::kOk, "noeviction");
  expect("replicas", FindingLevel::kUnknown, "2 replicas; CONFIG GET was refused");
}

TEST_F(HealthTest, a_malformed_answer_makes_the_finding_unknown) {
  const std::vector<std::function<MadeReply()>> nonsense = {
      [] { return MadeReply(); },
      [] { return MadeReply::integer(-1); },
      [] { return MadeReply::text(""); },
      [] { return MadeReply::text("maxmemory:-1\r\nused_memory:x\r\nmaxclients:0\r\nrole:"); },
      [] { return MadeReply::list(); },
      [] { return MadeReply::list(MadeReply::text("timeout"), MadeReply::integer(3)); },
      [] { return MadeReply::list(MadeReply::text("timeout"), MadeReply::text("-3")); },
      [] { return MadeReply::list(MadeReply::text("99999999999999"), MadeReply::text("0")); },
      [] { return MadeReply::error("LOADING later"); },
  };
  for (const auto &made : nonsense) {
    for (auto &[question, answer] : answers_) answer = made;
    for (const Finding &finding : findings()) {
      const bool is_of_link = finding.id == "reachable" || finding.id == "version" ||
                              finding.id == "pushes" || finding.id == "channels" ||
                              finding.id == "scripts";
      // Any reply but an error is an answer.
      const bool was_tried = finding.id == "wait" || finding.id == "tracking";
      if (is_of_link || was_tried) continue;
      EXPECT_EQ(finding.level, FindingLevel::kUnknown) << finding.id << ": " << finding.seen;
    }
  }
}

TEST_F(HealthTest, huge_numbers_do_not_overflow) {
  on_info("memory", "used_memory:9223372036854775807\r\nmaxmemory:1\r\n");
  expect("memory", FindingLevel::kFail, "1000%");
  on_info("clients", "connected_clients:9223372036854775807\r\nmaxclients:1\r\n");
  expect("connections", FindingLevel::kWarn, "of 1 ");
}

TEST_F(HealthTest, text_from_a_server_is_shown_as_one_short_line) {
  refuse("WAIT", "ERR \x01\xff\n" + std::string(500, 'x'));
  const Finding finding = find("wait");
  EXPECT_EQ(finding.seen.find('\n'), std::string::npos);
  EXPECT_LT(finding.seen.size(), 150U);
}

// ---- the client ---------------------------------------------------------------------------------

class CheckTest : public LockClientWorld {
 protected:
  static constexpr size_t kQuestionCount = 15;

  void health_found(size_t, const protocol::HealthFacts &, const LockTrial *trial) override {
    found_count_++;
    had_trial_ = trial != nullptr;
    if (trial != nullptr) why_no_lock_ = trial->why_no_lock();
  }
  void answer_all(const std::string &error) {
    while (!sent_.empty()) reply(MadeReply::error(error));
    advance(0);
  }
  RequestPtr check(int64_t wait_ms) {
    auto request = std::make_shared<Request>(Request::Op::kCheck);
    request->wait_ms = wait_ms;
    client_->start(request, now_);
    return request;
  }

  int found_count_ = 0;
  bool had_trial_ = false;
  std::string why_no_lock_;
};

TEST_F(CheckTest, a_background_check_runs_once_per_connection) {
  connect();
  EXPECT_TRUE(sent_.empty());
  client_->check_later(0, now_ + 100 * kMs);
  advance(99 * kMs);
  EXPECT_TRUE(sent_.empty());
  advance(2 * kMs);
  EXPECT_EQ(sent_.size(), kQuestionCount);
  answer_all("NOPERM no");
  EXPECT_EQ(found_count_, 1);
  EXPECT_FALSE(had_trial_);
  EXPECT_FALSE(is_dropped_);
  advance(60 * kSecond);
  EXPECT_TRUE(sent_.empty());
}

TEST_F(CheckTest, a_connection_that_ends_before_the_check_is_not_checked) {
  connect();
  client_->check_later(0, now_ + 100 * kMs);
  disconnect();
  advance(kSecond);
  EXPECT_TRUE(sent_.empty());
  EXPECT_FALSE(client_->begin_connect(0, now_)) << "nothing is to be done";
}

TEST_F(CheckTest, a_check_that_ends_two_connections_is_not_repeated) {
  for (int i = 0; i < 3; i++) {
    client_->on_connected(0, {}, now_);
    client_->check_later(0, now_ + 100 * kMs);
    advance(200 * kMs);
    EXPECT_EQ(sent_.empty(), i == 2);
    disconnect();
  }
  EXPECT_EQ(found_count_, 0);
}

TEST_F(CheckTest, a_check_ends_with_the_last_answer) {
  connect();
  const auto request = check(0);
  ASSERT_GT(sent_.size(), kQuestionCount);
  while (sent_.size() > 1) reply(MadeReply::error("NOPERM no"));
  EXPECT_FALSE(request->is_finished());
  answer_all("NOPERM no");
  EXPECT_EQ(request->status.load(), Status::kOk);
  EXPECT_TRUE(had_trial_);
  EXPECT_NE(why_no_lock_.find("NOPERM"), std::string::npos);
}

TEST_F(CheckTest, a_check_without_a_server_fails_with_the_reason) {
  const auto request = check(0);
  ASSERT_TRUE(client_->begin_connect(0, now_));
  client_->on_connect_failed(0, failure(Status::kUnavailable, "refused"), now_);
  EXPECT_EQ(request->status.load(), Status::kUnavailable);
  EXPECT_EQ(request->message, "refused");
}

TEST_F(CheckTest, a_lost_connection_fails_a_try_and_repeats_a_waiting_check) {
  connect();
  const auto once = check(0);
  const auto waiting = check(5000);
  disconnect();
  EXPECT_EQ(once->status.load(), Status::kUnavailable);
  EXPECT_FALSE(waiting->is_finished());
  client_->on_connected(0, {}, now_);
  ASSERT_GT(sent_.size(), kQuestionCount);
  answer_all("ERR no");
  EXPECT_EQ(waiting->status.load(), Status::kOk);
}

TEST_F(CheckTest, a_check_ends_when_its_wait_runs_out) {
  const Nanos start = now_;
  const auto request = check(300);
  for (int i = 0; i < 20 && !request->is_finished(); i++) {
    if (client_->begin_connect(0, now_)) {
      client_->on_connect_failed(0, failure(Status::kUnavailable, "refused"), now_);
    }
    advance(50 * kMs);
  }
  EXPECT_EQ(request->status.load(), Status::kUnavailable);
  EXPECT_LE(now_, start + 400 * kMs);
}

TEST_F(CheckTest, answers_after_a_cancel_do_not_change_a_check) {
  connect();
  const auto request = check(0);
  EXPECT_EQ(client_->cancel(*request, now_), Status::kCancelled);
  answer_all("ERR no");
  EXPECT_EQ(request->status.load(), Status::kCancelled);
}

}  // namespace
}  // namespace redlatch
