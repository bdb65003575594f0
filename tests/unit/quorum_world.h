// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// A quorum with made replies and a fake clock.
#pragma once

#include <initializer_list>

#include "lock_client_world.h"
#include "quorum/quorum_client.h"

namespace redlatch {

inline constexpr Nanos kSecond = 1000 * kMs;
inline constexpr size_t kNodes = 5;

class QuorumTest : public ::testing::Test, protected lock::Output {
 protected:
  using Request = lock::Request;
  using Lease = lock::Lease;
  using RequestPtr = std::shared_ptr<Request>;

  QuorumTest() : nodes_(kNodes), sent_(kNodes), is_dropped_(kNodes) {
    for (size_t i = 0; i < kNodes; i++) {
      nodes_[i].host = "node" + std::to_string(i);
      // Renewals are answered some time after they were sent.
      nodes_[i].command_timeout = 5 * kSecond;
    }
  }

  // ---- the output
  void send(size_t node, std::span<const std::string_view> argv) override {
    sent_[node].emplace_back(argv.begin(), argv.end());
  }
  // The names of clients, for messages: nodes know none but `holder_name_`.
  static bool is_of_names(const std::vector<std::string> &words) {
    return words[0] == "SET" || words[0] == "GETRANGE" || words[0] == "DEL";
  }
  void answer_names() {
    for (size_t i = 0; i < kNodes; i++) {
      while (!sent_[i].empty() && is_of_names(sent_[i].front())) {
        const bool is_question = sent_[i].front()[0] == "GETRANGE";
        const bool is_known = is_question && !holder_name_.empty();
        auto name = is_known ? MadeReply::text("1 " + holder_name_) : MadeReply();
        sent_[i].pop_front();
        quorum().on_reply(i, name.get(), now_);
      }
    }
  }
  void finished(Request &) override {}
  void lease_ended(Lease &) override { ended_count_++; }
  void drop_link(size_t node) override { is_dropped_[node] = true; }
  void node_validated(size_t node, const Outcome &why) override {
    validated_.push_back(std::to_string(node) + ": " + why.message);
  }

  // ---- nodes
  quorum::QuorumClient &quorum() {
    if (!quorum_) {
      const std::array<uint8_t, 16> random{1, 2, 3};
      lock::Output &output = *this;
      quorum_ = std::make_unique<quorum::QuorumClient>(nodes_, settings_, random, 7, output);
    }
    return *quorum_;
  }
  ServerFacts facts_of(size_t node, int64_t uptime_s = 100'000) const {
    ServerFacts facts;
    facts.run_id = "run" + std::to_string(node);
    facts.age.uptime_s = uptime_s;
    facts.age.asked_at = now_;
    return facts;
  }
  void connect(size_t node, const ServerFacts &facts) {
    (void)quorum().begin_connect(node, now_);
    quorum().on_connected(node, facts, now_);
  }
  ServerFacts replica_facts_of(size_t node) const {
    auto facts = facts_of(node);
    facts.is_replica = true;
    return facts;
  }
  void connect_all() {
    for (size_t i = 0; i < kNodes; i++) connect(i, facts_of(i));
  }
  void disconnect(size_t node) {
    sent_[node].clear();
    quorum().on_disconnected(node, now_);
  }
  // VOTE counts as ACQUIRE.
  std::string script(size_t node) const {
    const std::string name = exact_script(node);
    return name == "vote" ? "acquire" : name;
  }
  std::string exact_script(size_t node) const {
    if (sent_[node].empty()) return "";
    for (size_t i = 0; i < protocol::kScriptCount; i++) {
      const auto &text =
          protocol::script_text(static_cast<protocol::Script>(i), protocol::Format::kString, false);
      if (sent_[node].front()[1] == text.sha1) return std::string(text.name);
    }
    return "?";
  }
  std::string argument(size_t node, size_t i) const {
    const auto &argv = sent_[node].front();
    return argv.at(3 + std::stoul(argv.at(2)) + i);
  }
  void reply(size_t node, MadeReply made) {
    ASSERT_FALSE(sent_[node].empty()) << "node " << node << " was asked nothing";
    sent_[node].pop_front();
    quorum().on_reply(node, made.get(), now_);
    answer_names();
  }
  void yes(size_t node, int64_t fence = 100) {
    ASSERT_EQ(script(node), "acquire") << node;
    if (exact_script(node) == "vote") return reply(node, MadeReply::integer(1));
    reply(node, MadeReply::list(MadeReply::integer(1), MadeReply::text(std::to_string(fence)),
                                MadeReply::integer(1'700'000'000'000)));
  }
  // A try is refused; a queued acquire gets a ticket.
  void no(size_t node) {
    ASSERT_EQ(script(node), "acquire") << node;
    const bool is_try = argument(node, 2).empty();
    reply(node, MadeReply::list(MadeReply::integer(0), MadeReply::integer(30'000),
                                MadeReply::integer(1'700'000'000'000),
                                MadeReply::text(is_try ? "" : "1700000000000001"),
                                MadeReply::integer(is_try ? -1 : 0), MadeReply::text("12345678"),
                                MadeReply::text("aaaaaaaaaaaaaaaaaaaaaA0123456789"),
                                MadeReply::text("string"), MadeReply::integer(0)));
  }
  void count(size_t node, std::string_view name, int64_t result) {
    ASSERT_EQ(script(node), name) << node;
    reply(node, MadeReply::list(MadeReply::integer(result), MadeReply::integer(1'700'000'000'000),
                                MadeReply::integer(0)));
    // The description of the holder is written after the first extension, which returns the time.
    if (name == "extend" && is_description(node)) count(node, name, result);
  }
  bool is_description(size_t node) const {
    return script(node) == "extend" && sent_[node].front()[2] == "2" &&
           sent_[node].front().size() > 7;
  }

  // ---- time and callers
  void advance(Nanos by) {
    const Nanos until = now_ + by;
    for (int guard = 0; quorum().next_due() <= until; guard++) {
      ASSERT_LT(guard, 10'000) << "the timer does not move on";
      now_ = std::max(now_, quorum().next_due());
      for (size_t i = 0; i < nodes_.size(); i++) dialed_[i] += quorum().begin_connect(i, now_);
      quorum().on_timer(now_);
      answer_names();
    }
    now_ = until;
  }
  RequestPtr acquire(int64_t wait_ms = 0, lock::AcquireOptions options = {}) {
    auto request = std::make_shared<Request>(Request::Op::kAcquire);
    request->name = "lock";
    request->wait_ms = wait_ms;
    request->options = std::move(options);
    request->lease = std::make_shared<Lease>();
    quorum().start(request, now_);
    return request;
  }
  RequestPtr ask(Request::Op op, const std::shared_ptr<Lease> &lease, Nanos extend_to = 0) {
    auto request = std::make_shared<Request>(op);
    request->lease = lease;
    request->extend_to = extend_to;
    quorum().start(request, now_);
    return request;
  }
  std::shared_ptr<Lease> held() {
    const auto request = acquire();
    for (size_t i = 0; i < kNodes; i++) yes(i);
    EXPECT_EQ(request->status.load(), Status::kOk) << request->message;
    return request->lease;
  }
  // .. by the votes of 0 1 2; the other two have said no, and taken it back.
  std::shared_ptr<Lease> barely_held(lock::AcquireOptions options = {}) {
    const auto request = acquire(0, std::move(options));
    for (const size_t node : {0, 1, 2}) yes(node);
    for (const size_t node : {3, 4}) no(node);
    for (const size_t node : {3, 4}) count(node, "release", -1);
    EXPECT_EQ(request->status.load(), Status::kOk) << request->message;
    return request->lease;
  }
  // @return the node at whose queue the client waits then.
  size_t refused_by_all() {
    for (size_t i = 0; i < kNodes; i++) no(i);
    size_t queued_at = kNodes;
    for (size_t i = 0; i < kNodes; i++) {
      count(i, "release", -1);
      if (script(i) == "acquire") queued_at = i;
    }
    return queued_at;
  }
  void renew(std::initializer_list<size_t> nodes) {
    for (const size_t node : nodes) count(node, "extend", 1);
  }
  // .. as often as they are asked.
  void confirm(std::initializer_list<size_t> nodes) {
    for (const size_t node : nodes) {
      while (script(node) == "extend") count(node, "extend", 1);
    }
  }
  void expect_nothing_at(std::initializer_list<size_t> nodes) {
    for (const size_t node : nodes) EXPECT_EQ(script(node), "") << node;
  }
  Nanos left(const std::shared_ptr<Lease> &lease) const { return lease->deadline.load() - now_; }

  QuorumSettings settings_;
  std::vector<Settings> nodes_;
  std::vector<std::deque<std::vector<std::string>>> sent_;
  std::vector<bool> is_dropped_;
  std::vector<int> dialed_ = std::vector<int>(kNodes);
  Nanos now_ = 1000 * kSecond;
  int ended_count_ = 0;
  std::vector<std::string> validated_;
  std::string holder_name_;  // of the client that no() names
  std::unique_ptr<quorum::QuorumClient> quorum_;
};

}  // namespace redlatch
