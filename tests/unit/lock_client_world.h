// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// LockClientWorld: a client with a fake clock, whose commands are recorded and whose replies are
// made by the test. No server, no socket, no sleep.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lock/lock_client.h"

namespace redlatch {

// A reply that owns what it holds.
class MadeReply {
 public:
  static MadeReply integer(int64_t value) {
    MadeReply made;
    made.reply_.kind = Reply::Kind::kInteger;
    made.reply_.integer = value;
    return made;
  }
  static MadeReply text(std::string value, Reply::Kind kind = Reply::Kind::kText) {
    MadeReply made;
    made.text_ = std::make_unique<std::string>(std::move(value));
    made.reply_.kind = kind;
    made.reply_.data = made.text_->data();
    made.reply_.size = made.text_->size();
    return made;
  }
  static MadeReply error(std::string value) { return text(std::move(value), Reply::Kind::kError); }
  template <class... Parts>
  static MadeReply list(Parts... parts) {
    MadeReply made;
    made.parts_ = std::make_unique<std::vector<MadeReply>>();
    (made.parts_->push_back(std::move(parts)), ...);
    made.pointers_ = std::make_unique<std::vector<Reply *>>();
    for (MadeReply &part : *made.parts_) made.pointers_->push_back(&part.reply_);
    made.reply_.kind = Reply::Kind::kArray;
    made.reply_.elements = made.pointers_->data();
    made.reply_.size = made.pointers_->size();
    return made;
  }
  const Reply &get() const { return reply_; }

 private:
  Reply reply_;
  std::unique_ptr<std::string> text_;
  std::unique_ptr<std::vector<MadeReply>> parts_;
  std::unique_ptr<std::vector<Reply *>> pointers_;
};

class LockClientWorld : public ::testing::Test, protected lock::Output {
 protected:
  using Request = lock::Request;
  using Lease = lock::Lease;
  using RequestPtr = std::shared_ptr<Request>;

  static constexpr int64_t kServerMs = 1'700'000'000'000;  // the server's clock at local time 0
  static constexpr std::string_view kFence = "1700000000000000";

  LockClientWorld() { client_ = make_client(); }

  std::unique_ptr<lock::LockClient> make_client() {
    const std::array<uint8_t, 16> random{1, 2, 3};
    lock::Output &output = *this;
    return std::make_unique<lock::LockClient>(settings_, random, 7, output);
  }

  // ---- the output
  // Names of clients are answered by the world, in their turn, and not seen in sent_.
  void send(size_t, std::span<const std::string_view> argv) override {
    std::vector<std::string> words(argv.begin(), argv.end());
    if (words[0] != "SET" && words[0] != "GETRANGE" && words[0] != "DEL") {
      sent_.push_back(std::move(words));
      return;
    }
    asked_names_.push_back({replied_count_ + sent_.size(), std::move(words)});
  }
  void finished(Request &) override { finished_count_++; }
  void lease_ended(Lease &) override { ended_count_++; }
  void drop_link(size_t) override { is_dropped_ = true; }
  void send_on_side(size_t, std::span<const std::string_view> argv) override {
    side_sent_.emplace_back(argv.begin(), argv.end());
  }
  void drop_side(size_t) override { is_side_dropped_ = true; }
  void warn(std::string_view text) noexcept override { warnings_.emplace_back(text); }

  // ---- the time and the connection
  void answer_names() {
    while (!asked_names_.empty() && asked_names_.front().behind <= replied_count_) {
      const auto words = std::move(asked_names_.front().words);
      asked_names_.pop_front();
      name_commands_.push_back(words);
      const auto known = words[0] == "GETRANGE" ? names_.find(words[1]) : names_.end();
      const bool is_nil = words[0] == "GETRANGE" && known == names_.end();
      const auto made = is_nil                   ? MadeReply()
                        : words[0] == "GETRANGE" ? MadeReply::text(known->second)
                                                 : MadeReply::text("OK");
      client_->on_reply(0, made.get(), now_);
    }
  }
  void advance(Nanos by) {
    answer_names();
    const Nanos until = now_ + by;
    for (int guard = 0; client_->next_due() <= until; guard++) {
      ASSERT_LT(guard, 10'000) << "the client's timer does not move on";
      now_ = std::max(now_, client_->next_due());
      if (client_->begin_connect(0, now_)) return;  // the test decides what becomes of it
      if (client_->begin_side_connect(0, now_)) return;
      if (is_dropped_) return;
      client_->on_timer(now_);
      answer_names();
    }
    now_ = until;
  }
  void connect(const ServerFacts &facts = {}) {
    (void)client_->begin_connect(0, now_);
    client_->on_connected(0, facts, now_);
  }
  // Anew, to a server that can tell when a key changes.
  void connect_with_tracking() {
    disconnect();
    ServerFacts facts;
    facts.can_track = true;
    client_->on_connected(0, facts, now_);
  }
  void disconnect() {
    is_dropped_ = false;
    sent_.clear();
    asked_names_.clear();
    client_->on_disconnected(0, now_);
  }

  void reconnect() {
    disconnect();
    connect();
  }

  // ---- the connection at the side
  void connect_side() {
    ASSERT_TRUE(client_->begin_side_connect(0, now_));
    client_->on_side_connected(0, now_);
    advance(0);
  }
  void disconnect_side() {
    is_side_dropped_ = false;
    side_sent_.clear();
    client_->on_side_disconnected(0, now_);
  }
  void side_reply(const MadeReply &made) {
    ASSERT_FALSE(side_sent_.empty()) << "nothing was sent at the side that could be answered";
    side_sent_.pop_front();
    client_->on_side_reply(0, made.get(), now_);
  }
  void side_extended(int64_t result = 1) {
    ASSERT_FALSE(side_sent_.empty());
    ASSERT_NE(side_sent_.front()[0], "WAIT");
    side_reply(MadeReply::list(MadeReply::integer(result), MadeReply::integer(server_ms())));
  }
  void counted(int64_t replicas) {
    ASSERT_FALSE(side_sent_.empty());
    ASSERT_EQ(side_sent_.front()[0], "WAIT");
    side_reply(MadeReply::integer(replicas));
  }
  // All of one batch.
  void confirmed_by(int64_t replicas) {
    while (!side_sent_.empty() && side_sent_.front()[0] != "WAIT") side_extended();
    counted(replicas);
  }

  // ---- the server
  int64_t server_ms() const { return kServerMs + now_ / kMs; }
  // The name of the script that a command calls; of another command its first word.
  static std::string script_of(const std::vector<std::string> &argv) {
    if (argv[0] != "EVALSHA" && argv[0] != "EVAL") return argv[0];
    for (size_t i = 0; i < 2 * protocol::kScriptCount; i++) {
      const auto which = static_cast<protocol::Script>(i / 2);
      const bool is_sharded = i % 2 == 1;
      for (const auto format : {protocol::Format::kString, protocol::Format::kHash}) {
        const auto &script = protocol::script_text(which, format, is_sharded);
        if (argv[1] == script.sha1) return std::string(script.name);
        if (argv[1] == script.text()) return std::string(script.name) + " text";
      }
    }
    return "?";
  }
  // .. of the oldest unanswered command; "" if there is none.
  std::string next_script() const { return sent_.empty() ? "" : script_of(sent_.front()); }
  // Argument `i` behind the keys of the oldest unanswered command.
  std::string argument(size_t i) const {
    const auto &argv = sent_.front();
    return argv.at(3 + std::stoul(argv.at(2)) + i);
  }
  void reply(MadeReply made) {
    ASSERT_FALSE(sent_.empty()) << "nothing was sent that could be answered";
    answer_names();
    sent_.pop_front();
    replied_count_++;
    client_->on_reply(0, made.get(), now_);
    answer_names();
  }
  void reply_granted(std::string_view fence = kFence) {
    const std::string script = next_script();
    ASSERT_TRUE(script.starts_with("acquire") || script.starts_with("upgrade")) << script;
    reply(MadeReply::list(MadeReply::integer(1), MadeReply::text(std::string(fence)),
                          MadeReply::integer(server_ms())));
  }
  void reply_queued(int64_t pttl = 30'000, int64_t rank = 0,
                    std::string holder = "aaaaaaaaaaaaaaaaaaaaaA0123456789",
                    std::string type = "string", int64_t flags = 0) {
    const std::string script = next_script();
    ASSERT_TRUE(script == "acquire" || script == "acquire_read" || script == "upgrade") << script;
    const bool is_try = argument(2).empty();
    reply(MadeReply::list(
        MadeReply::integer(0), MadeReply::integer(pttl), MadeReply::integer(server_ms()),
        MadeReply::text(is_try ? "" : "1700000000000001"), MadeReply::integer(is_try ? -1 : rank),
        MadeReply::text("12345678"), MadeReply::text(std::move(holder)),
        MadeReply::text(std::move(type)), MadeReply::integer(flags)));
  }
  void reply_count(std::string_view script, int64_t result, int64_t flags = 0) {
    ASSERT_EQ(next_script(), script);
    reply(MadeReply::list(MadeReply::integer(result), MadeReply::integer(server_ms()),
                          MadeReply::integer(flags)));
  }
  // A grant to the place with this member, stamped `age` ago.
  std::string grant_message(const std::string &token, Nanos age = 0, int64_t provisional_ms = 3000,
                            std::string_view check = "12345678",
                            protocol::Mode mode = protocol::Mode::kWrite,
                            const char *fence = nullptr) const {
    char numbers[64];
    const std::string minted = std::to_string((kServerMs + (now_ - age) / kMs) * 1000 + 64);
    snprintf(numbers, sizeof numbers, "%c%05lld%s%013lld", static_cast<char>(mode),
             static_cast<long long>(provisional_ms), fence == nullptr ? minted.c_str() : fence,
             static_cast<long long>(kServerMs + (now_ - age) / kMs));
    return "g" + token.substr(22) + numbers + std::string(check);
  }
  template <class... Parts>
  void push_grant(const std::string &token, Parts... parts) {
    client_->on_push(0, grant_message(token, parts...), now_);
  }

  // ---- callers
  RequestPtr acquire(int64_t wait_ms = -1, lock::AcquireOptions options = {},
                     std::string name = "lock") {
    auto request = std::make_shared<Request>(Request::Op::kAcquire);
    request->name = std::move(name);
    request->wait_ms = wait_ms;
    request->options = std::move(options);
    request->lease = std::make_shared<Lease>();
    client_->start(request, now_);
    return request;
  }
  RequestPtr release(const std::shared_ptr<Lease> &lease) {
    auto request = std::make_shared<Request>(Request::Op::kRelease);
    request->lease = lease;
    client_->start(request, now_);
    return request;
  }
  RequestPtr extend(const std::shared_ptr<Lease> &lease, Nanos to) {
    auto request = std::make_shared<Request>(Request::Op::kExtend);
    request->lease = lease;
    request->extend_to = to;
    client_->start(request, now_);
    return request;
  }
  RequestPtr detach(const std::shared_ptr<Lease> &lease) {
    auto request = std::make_shared<Request>(Request::Op::kDetach);
    request->lease = lease;
    client_->start(request, now_);
    return request;
  }
  RequestPtr upgrade(const std::shared_ptr<Lease> &lease, int64_t wait_ms = -1) {
    auto request = std::make_shared<Request>(Request::Op::kUpgrade);
    request->lease = lease;
    request->wait_ms = wait_ms;
    client_->start(request, now_);
    return request;
  }
  RequestPtr downgrade(const std::shared_ptr<Lease> &lease) {
    auto request = std::make_shared<Request>(Request::Op::kDowngrade);
    request->lease = lease;
    client_->start(request, now_);
    return request;
  }
  // A lease that was granted by a reply.
  std::shared_ptr<Lease> held(lock::AcquireOptions options = {}) {
    const auto request = acquire(-1, std::move(options));
    reply_granted();
    EXPECT_EQ(request->status.load(), Status::kOk) << request->message;
    return request->lease;
  }
  Lease::State state(const std::shared_ptr<Lease> &lease) const { return lease->state_at(now_); }

  Settings settings_;
  Nanos now_ = 1000 * kMs;
  std::deque<std::vector<std::string>> sent_;
  struct AskedName {
    size_t behind;  // so many other commands
    std::vector<std::string> words;
  };
  std::deque<AskedName> asked_names_;
  std::vector<std::vector<std::string>> name_commands_;  // that were answered
  std::map<std::string, std::string> names_;             // by key
  size_t replied_count_ = 0;
  int finished_count_ = 0;
  int ended_count_ = 0;
  bool is_dropped_ = false;
  std::deque<std::vector<std::string>> side_sent_;
  bool is_side_dropped_ = false;
  std::vector<std::string> warnings_;
  std::unique_ptr<lock::LockClient> client_;
};

inline lock::AcquireOptions with_lease(Nanos lease) {
  lock::AcquireOptions options;
  options.ttl = lease;
  return options;
}

}  // namespace redlatch
