// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: an observer of an election reads when it has to, and not more often. Method: the lock
// client below it only notes what it is asked for; answers, changes and the time come from the
// test.
#include "election/observer.h"

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "compound/compound.h"
#include "lock/service.h"

namespace redlatch {
namespace {

using compound::PartRequest;
using lock::Request;
using operate::Leader;
using operate::TrackKey;

class Asked final : public lock::LockService {
 public:
  std::vector<std::shared_ptr<Request>> parts;

  void start(const std::shared_ptr<Request> &request, Nanos) override {
    request->task->begin("app:", request->name);
    parts.push_back(request);
  }
  Status cancel(Request &request, Nanos) override {
    request.complete(Status::kCancelled, "");
    return Status::kCancelled;
  }
  const std::string &channel(size_t) const override { return channel_; }
  void release_async(lock::Lease &, Nanos) override {}
  void shut_down(Nanos) override {}
  void give_up() override {}
  size_t drained_count() const override { return 0; }
  bool begin_connect(size_t, Nanos) override { return false; }
  void on_connected(size_t, const ServerFacts &, Nanos) override {}
  void on_connect_failed(size_t, const Outcome &, Nanos) override {}
  void on_disconnected(size_t, Nanos) noexcept override {}
  void on_reply(size_t, const Reply &, Nanos) override {}
  void on_push(size_t, std::string_view, Nanos) override {}
  void on_invalidated(size_t, std::optional<std::string_view>, Nanos) override {}
  void check_later(size_t, Nanos) override {}
  void on_timer(Nanos) override {}
  Nanos next_due() const override { return kNever; }
  size_t in_flight_count(size_t) const override { return 0; }
  bool expects_push() const override { return false; }
  bool is_outstanding() const override { return false; }
  const Request *waits_for_itself(const Request &) const override { return nullptr; }

 private:
  std::string channel_;
};

class Ignored final : public lock::Output {
 public:
  void finished(Request &) override {}
  void lease_ended(lock::Lease &) override {}
  void send(size_t, std::span<const std::string_view>) override {}
  void drop_link(size_t) override {}
  void send_on_side(size_t, std::span<const std::string_view>) override {}
  void send_on_messages(size_t, std::span<const std::string_view>) override {}
  void drop_side(size_t) override {}
  void warn(std::string_view) noexcept override {}
};

class ObserverTest : public testing::Test {
 protected:
  static constexpr Nanos kSecond = 1'000 * kMs;

  void start(int64_t seen = 6, int64_t wait_ms = -1) {
    request_ = std::make_shared<Request>(Request::What::ask<Leader>());
    request_->name = "office";
    request_->wait_ms = wait_ms;
    request_->as<Leader>().seen = seen;
    observer_ = std::make_shared<election::Observer>(inner_, table_, count_, request_, now_);
    table_.add(observer_);
    observer_->start(now_);
    table_.review_marked(now_);
  }
  Asked &asked() { return static_cast<Asked &>(*inner_); }
  Request &part() { return *asked().parts.back(); }
  template <class Task>
  bool asks() {
    return !part().is_finished() && dynamic_cast<Task *>(part().task.get()) != nullptr;
  }
  void answer(Status status = Status::kOk) {
    auto &open = static_cast<PartRequest &>(part());
    open.complete(status, "");
    if (open.owner != nullptr) open.owner->mark();
    table_.review_marked(now_);
  }
  void track(bool is_tracked = true) {
    ASSERT_TRUE(asks<TrackKey>());
    part().as<TrackKey>().is_tracked = is_tracked;
    answer();
  }
  void read(int64_t position = 6, int64_t left_ms = -2) {
    ASSERT_TRUE(asks<Leader>());
    part().as<Leader>().info.position = position;
    part().as<Leader>().info.pttl_ms = left_ms;
    answer();
  }
  void change(std::optional<std::string_view> key) {
    observer_->on_key_changed(key);
    table_.review_marked(now_);
  }
  Nanos rest() { return table_.next_due() - now_; }
  void pass(Nanos time) {
    now_ += time;
    table_.on_timer(now_);
  }

  Ignored output_;
  compound::Inner inner_ = std::make_unique<Asked>();
  compound::Table table_{output_};
  size_t count_ = 0;
  Nanos now_ = 100 * kSecond;
  std::shared_ptr<Request> request_;
  std::shared_ptr<election::Observer> observer_;
};

TEST_F(ObserverTest, it_tracks_the_key_before_it_reads) {
  start();
  EXPECT_EQ(count_, 1U);
  track();
  EXPECT_EQ(part().as<Leader>().seen, 6);
  read(9);
  EXPECT_EQ(request_->status.load(), Status::kOk);
  EXPECT_EQ(request_->as<Leader>().info.position, 9);
  observer_ = nullptr;
  EXPECT_EQ(count_, 0U);
}

TEST_F(ObserverTest, without_news_it_waits_for_a_change) {
  start();
  track();
  read();
  EXPECT_EQ(rest(), 5 * kSecond);
  change("app:other");
  EXPECT_EQ(asked().parts.size(), 2U);
  change("app:office");
  track();
  read(7);
  EXPECT_EQ(request_->status.load(), Status::kOk);
}

TEST_F(ObserverTest, it_reads_when_the_lease_ends) {
  start();
  track();
  read(6, 300);
  EXPECT_EQ(rest(), 302 * kMs);
  pass(302 * kMs);
  EXPECT_TRUE(asks<TrackKey>());
}

TEST_F(ObserverTest, a_change_during_a_read_is_not_missed) {
  start();
  track();
  change("app:office");
  read();
  EXPECT_EQ(rest(), 20 * kMs);
  pass(20 * kMs);
  EXPECT_TRUE(asks<TrackKey>());
}

TEST_F(ObserverTest, it_does_not_read_all_the_time) {
  start();
  track();
  read(6, 0);
  EXPECT_EQ(rest(), 20 * kMs);
}

TEST_F(ObserverTest, it_polls_where_nothing_is_reported) {
  start();
  track(false);
  read();
  EXPECT_EQ(rest(), kSecond);
  pass(kSecond);
  EXPECT_TRUE(asks<Leader>()) << "nor does it ask for reports again";
  read();
  change(std::nullopt);
  EXPECT_TRUE(asks<TrackKey>()) << "but of the next connection";
}

TEST_F(ObserverTest, an_outage_is_waited_for) {
  start();
  answer(Status::kUnavailable);
  EXPECT_EQ(rest(), kSecond);
  pass(kSecond);
  track();
  answer(Status::kOutcomeUnknown);
  EXPECT_EQ(rest(), kSecond);
  EXPECT_FALSE(request_->is_finished());
}

TEST_F(ObserverTest, a_refusal_ends_it) {
  start();
  track();
  answer(Status::kDenied);
  EXPECT_EQ(request_->status.load(), Status::kDenied);
}

TEST_F(ObserverTest, its_limit_says_whether_the_server_has_answered) {
  start(6, 100);
  pass(100 * kMs);
  EXPECT_EQ(request_->status.load(), Status::kUnavailable);
  EXPECT_EQ(request_->message, "the server has not named the leader of 'office' within 100 ms");
  start(6, 100);
  track();
  read();
  EXPECT_EQ(rest(), 100 * kMs);
  pass(100 * kMs);
  EXPECT_EQ(request_->status.load(), Status::kTimeout);
  EXPECT_EQ(request_->message, "the leader of 'office' has not changed within 100 ms");
}

TEST_F(ObserverTest, an_answer_at_the_limit_counts) {
  start(6, 100);
  track();
  now_ += 100 * kMs;
  read(7);
  EXPECT_EQ(request_->status.load(), Status::kOk);
}

TEST_F(ObserverTest, a_shut_down_ends_it) {
  start();
  observer_->shut_down(now_);
  EXPECT_EQ(request_->status.load(), Status::kClosed);
  EXPECT_TRUE(part().is_finished());
}

}  // namespace
}  // namespace redlatch
