// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The client of a cluster of three servers, a, b and c, with made replies and a fake clock.
#pragma once

#include <algorithm>
#include <map>

#include "cluster/cluster_client.h"
#include "failing_memory.h"
#include "lock_client_world.h"
#include "protocol/slots.h"

namespace redlatch {

inline constexpr Nanos kSecond = 1000 * kMs;
inline constexpr char kTicket[] = "1700000000000001";

class ClusterTest : public ::testing::Test, protected lock::Output {
 protected:
  using Request = lock::Request;
  using Lease = lock::Lease;
  using RequestPtr = std::shared_ptr<Request>;
  using Words = std::vector<std::string>;

  ClusterTest() {
    settings_.cluster.addresses = {address_of('a')};
    settings_.command_timeout = 5 * kSecond;
    ranges_ = first_;
  }

  static HostPort address_of(char host) {
    return {std::string(1, host), std::to_string(host - 'a' + 1)};
  }

  // ---- the output
  void send(size_t node, std::span<const std::string_view> argv) override {
    ASSERT_GT(node, 0u) << "node 0 is no server";
    sent_[host_of(node)].emplace_back(argv.begin(), argv.end());
  }
  void finished(Request &) override { finished_count_++; }
  void lease_ended(Lease &) override { ended_count_++; }
  void warn(std::string_view text) noexcept override { warnings_.emplace_back(text); }
  void drop_link(size_t node) override { dropped_ += host_of(node); }
  void open_node(size_t node, const Settings &settings) override {
    ASSERT_EQ(node, hosts_.size() + 1) << "nodes are opened in order";
    EXPECT_TRUE(settings.is_of_cluster);
    hosts_ += settings.host;
  }
  char host_of(size_t node) const { return hosts_.at(node - 1); }
  size_t node_of(char host) const {
    const size_t place = hosts_.find(host);
    EXPECT_NE(place, std::string::npos) << host << " was not opened";
    return place + 1;
  }

  // ---- the cluster
  cluster::ClusterClient &cluster() {
    if (!cluster_) {
      const std::array<uint8_t, 16> random{1, 2, 3};
      lock::Output &output = *this;
      cluster_ = std::make_unique<cluster::ClusterClient>(settings_, random, 7, output);
    }
    return *cluster_;
  }
  void start_again() {
    cluster_.reset();
    sent_.clear();
    hosts_.clear();
    dropped_.clear();
    ended_count_ = 0;
  }
  // Connects as the client wants, unless the map is kept back or the server is down.
  void run() {
    for (size_t node = 0; node <= hosts_.size(); node++) {
      if (node == 0 && !answers_map_) continue;
      const bool is_down = node > 0 && down_.find(host_of(node)) != std::string::npos;
      if (is_down || !cluster().begin_connect(node, now_)) continue;
      if (node == 0) {
        map_count_++;
        cluster().on_slots_read(ranges_, now_);
      } else {
        ServerFacts facts;
        facts.is_push_trusted = !refuses_channels_ && channel_owner_ == 0;
        if (tells_time_) facts.age = {0, clock_of(host_of(node)), kMs, now_ - kMs};
        if (channel_owner_ != 0) facts.channel_owner = address_of(channel_owner_);
        cluster().on_connected(node, facts, now_);
      }
    }
    answer_names();
  }
  void advance(Nanos by) {
    const Nanos until = now_ + by;
    for (int guard = 0;; guard++) {
      ASSERT_LT(guard, 10'000) << "the client's timer does not move on";
      run();
      const Nanos due = cluster().next_due();
      if (due > until) break;
      now_ = std::max(now_ + 1, due);
      cluster().on_timer(now_);
    }
    now_ = std::max(now_, until);
  }
  // Until a command for `host` waits for its answer.
  void advance_to_command(char host, Nanos limit = 60 * kSecond) {
    const Nanos until = now_ + limit;
    for (run(); sent_[host].empty() && now_ < until; run()) advance(5 * kMs);
    ASSERT_FALSE(sent_[host].empty()) << host << " was asked nothing";
  }
  // Until `a` has a command to answer; `b` confirms what it is asked.
  void advance_while_b_confirms() {
    for (int i = 0; i < 1'000 && scripts('a').empty(); i++) {
      advance(20 * kMs);
      if (!scripts('b').empty()) reply('b', count(1));
    }
  }
  void disconnect(char host) {
    std::erase(dropped_, host);
    sent_[host].clear();
    cluster().on_disconnected(node_of(host), now_);
  }
  // `host` has the slot from now on.
  void give(uint16_t slot, char host) {
    std::vector<protocol::SlotRange> next;
    for (const auto &range : ranges_) {
      if (!range.contains(slot)) {
        next.push_back(range);
        continue;
      }
      if (range.first < slot) next.push_back({range.first, uint16_t(slot - 1), range.primary});
      next.push_back({slot, slot, address_of(host)});
      if (slot < range.last) next.push_back({uint16_t(slot + 1), range.last, range.primary});
    }
    ranges_ = next;
  }
  char owner_of(uint16_t slot) const {
    for (const auto &range : ranges_) {
      if (range.contains(slot)) return range.primary.host.front();
    }
    return '-';
  }
  uint16_t slot_of(const std::string &name) const {
    return protocol::slot_of(settings_.name_space + name);
  }
  // A lock of this server, the first or a later one.
  std::string name_at(char host, int nth = 0) const {
    for (int i = 0;; i++) {
      const std::string name = "lock" + std::to_string(i);
      if (owner_of(slot_of(name)) == host && nth-- == 0) return name;
    }
  }
  uint16_t channel_slot(char host) { return protocol::slot_of(cluster().channel(node_of(host))); }

  // ---- servers
  // Names of clients are answered at once.
  // A listing reads a shorter part of the keys that it finds.
  static inline const std::string kLastOfName = std::to_string(protocol::kMaxNameTextBytes - 1);
  void answer_names() {
    for (size_t node = 1; node <= hosts_.size(); node++) {
      auto &sent = sent_[host_of(node)];
      const auto is_of_name = [](const Words &words) {
        const bool is_reader_key = words.size() > 1 && words[1].ends_with(":rwlock_timeout:1");
        if (words[0] == "GETRANGE") return words.back() == kLastOfName;
        return !is_reader_key && (words[0] == "SET" || words[0] == "DEL");
      };
      while (!sent.empty() && is_of_name(sent.front())) {
        const bool is_question = sent.front()[0] == "GETRANGE";
        const auto made = is_question ? MadeReply() : MadeReply::text("OK");
        sent.pop_front();
        cluster().on_reply(node, made.get(), now_);
      }
    }
  }
  static std::string script_of(const Words &words) {
    if (words[0] != "EVALSHA" && words[0] != "EVAL") return words[0];
    for (size_t i = 0; i < protocol::kScriptCount; i++) {
      for (const auto format : protocol::kFormats) {
        const auto &script = protocol::script_text(static_cast<protocol::Script>(i), format, false);
        if (words[1] == script.sha1 || words[1] == script.text()) return std::string(script.name);
      }
    }
    return "?";
  }
  // The scripts that `host` has to answer: "acquire cancel".
  std::string scripts(char host) {
    answer_names();
    std::string all;
    for (const Words &words : sent_[host]) all += (all.empty() ? "" : " ") + script_of(words);
    return all;
  }
  static size_t key_count(const Words &words) { return std::stoul(words.at(2)); }
  static std::string argument(const Words &words, size_t i) {
    return words.at(3 + key_count(words) + i);
  }
  // The oldest command that `host` has not answered.
  const Words &next(char host) {
    answer_names();
    EXPECT_FALSE(sent_[host].empty()) << host << " was asked nothing";
    static const Words kNothing = {"EVALSHA", "", "0", "", "", "", "", ""};
    return sent_[host].empty() ? kNothing : sent_[host].front();
  }
  void reply(char host, const MadeReply &made) {
    answer_names();
    ASSERT_FALSE(sent_[host].empty()) << host << " was asked nothing";
    sent_[host].pop_front();
    cluster().on_reply(node_of(host), made.get(), now_);
    answer_names();
  }
  // Minus that of the client.
  Nanos clock_of(char host) const {
    const auto ahead = ahead_.find(host);
    return 1'700'000'000'000 * kMs + (ahead == ahead_.end() ? 0 : ahead->second);
  }
  int64_t server_ms(char host = 'a') const { return (clock_of(host) + now_) / kMs; }
  MadeReply granted(char host = 'a') const {
    return MadeReply::list(MadeReply::integer(1), MadeReply::text("1700000000000000"),
                           MadeReply::integer(server_ms(host)));
  }
  MadeReply queued(bool is_try = false) const {
    return MadeReply::list(MadeReply::integer(0), MadeReply::integer(30'000),
                           MadeReply::integer(server_ms()), MadeReply::text(is_try ? "" : kTicket),
                           MadeReply::integer(is_try ? -1 : 0), MadeReply::text("12345678"),
                           MadeReply::text("aaaaaaaaaaaaaaaaaaaaaA0123456789"),
                           MadeReply::text("string"), MadeReply::integer(0));
  }
  MadeReply count(int64_t result, char host = 'a') const {
    return MadeReply::list(MadeReply::integer(result), MadeReply::integer(server_ms(host)),
                           MadeReply::integer(0));
  }
  // Of a lock that another library holds.
  MadeReply inspected() const {
    return MadeReply::list(MadeReply::integer(server_ms()), MadeReply::text("string"),
                           MadeReply::text("5"), MadeReply::integer(-1), MadeReply::text(""),
                           MadeReply::integer(0), MadeReply::list(), MadeReply::list(),
                           MadeReply::integer(0), MadeReply::list(), MadeReply::integer(0));
  }
  static std::string target(const char *word, uint16_t slot, char host) {
    const HostPort to = address_of(host);
    return std::string(word) + " " + std::to_string(slot) + " " + to.host + ":" + to.port;
  }
  static MadeReply moved(uint16_t slot, char host) {
    return MadeReply::error(target("MOVED", slot, host));
  }
  static MadeReply ask(uint16_t slot, char host) {
    return MadeReply::error(target("ASK", slot, host));
  }
  static MadeReply half_done() {
    return MadeReply::error("ERR Attempted to access a non local key in a cluster node");
  }
  static MadeReply try_again() {
    return MadeReply::error("TRYAGAIN Multiple keys request during rehashing of slot");
  }

  // ---- callers
  RequestPtr start(Request::What what, const std::string &name, int64_t wait_ms = -1) {
    auto request = std::make_shared<Request>(what);
    request->name = name;
    request->wait_ms = wait_ms;
    if (request->op == Request::Op::kAcquire) request->lease = std::make_shared<Lease>();
    cluster().start(request, now_);
    return request;
  }
  RequestPtr acquire(const std::string &name, int64_t wait_ms = -1) {
    return start(Request::Op::kAcquire, name, wait_ms);
  }
  RequestPtr acquire(const std::string &name, const lock::AcquireOptions &options) {
    auto request = std::make_shared<Request>(Request::Op::kAcquire);
    request->name = name;
    request->lease = std::make_shared<Lease>();
    request->options = options;
    cluster().start(request, now_);
    return request;
  }
  RequestPtr acquire(const std::string &name, protocol::Mode mode, protocol::Format format) {
    lock::AcquireOptions options;
    options.mode = mode;
    options.format = format;
    return acquire(name, options);
  }
  RequestPtr release(const std::shared_ptr<Lease> &lease) {
    auto request = std::make_shared<Request>(Request::Op::kRelease);
    request->lease = lease;
    cluster().start(request, now_);
    return request;
  }
  RequestPtr extend(const std::shared_ptr<Lease> &lease, Nanos to = 0) {
    auto request = std::make_shared<Request>(Request::Op::kExtend);
    request->lease = lease;
    request->extend_to = to;
    cluster().start(request, now_);
    return request;
  }
  std::shared_ptr<Lease> held(const std::string &name) {
    const auto request = acquire(name);
    run();
    const char host = owner_of(slot_of(name));
    EXPECT_EQ(scripts(host), "acquire");
    reply(host, granted(host));
    EXPECT_EQ(request->status.load(), Status::kOk) << request->message;
    return request->lease;
  }
  Lease::State state(const std::shared_ptr<Lease> &lease) const { return lease->state_at(now_); }

  Settings settings_;
  const std::vector<protocol::SlotRange> first_ = {
      {0, 5460, address_of('a')}, {5461, 10922, address_of('b')}, {10923, 16383, address_of('c')}};
  std::vector<protocol::SlotRange> ranges_;  // the truth
  Nanos now_ = kSecond;
  bool answers_map_ = true;
  bool refuses_channels_ = false;
  bool tells_time_ = false;      // the handshake asks for it
  std::map<char, Nanos> ahead_;  // clocks of servers
  std::vector<std::string> warnings_;
  char channel_owner_ = 0;  // that subscriptions are redirected to
  std::string down_;        // servers that cannot be reached
  int map_count_ = 0;
  std::string hosts_;  // of the nodes, by number from 1 on
  std::string dropped_;
  std::map<char, std::deque<Words>> sent_;
  int finished_count_ = 0;
  int ended_count_ = 0;
  std::unique_ptr<cluster::ClusterClient> cluster_;
};

}  // namespace redlatch
