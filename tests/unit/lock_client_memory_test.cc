// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: memory that runs out between the transition of a machine and what LockClient does with it
// loses no caller and no lock. Method: each allocation of an event fails once, in turn; then the
// connection is dropped, as core/runtime does, and made again.
#include <cstdlib>
#include <new>
#include <span>
#include <string_view>

#include "failing_memory.h"
#include "lock_client_world.h"
#include "operate/operation.h"

int64_t redlatch::allocation_countdown = 0;

namespace {

int64_t &countdown = redlatch::allocation_countdown;

void *allocate(size_t size) {
  if (countdown > 0 && --countdown == 0) throw std::bad_alloc();
  void *block = malloc(size);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

}  // namespace

void *operator new(size_t size) { return allocate(size); }
void *operator new[](size_t size) { return allocate(size); }
void operator delete(void *memory) noexcept { free(memory); }
void operator delete[](void *memory) noexcept { free(memory); }
void operator delete(void *memory, size_t) noexcept { free(memory); }
void operator delete[](void *memory, size_t) noexcept { free(memory); }

namespace redlatch {
namespace {

class MemoryTest : public LockClientWorld {
 protected:
  // While failing_sends_ > 0, and counts there.
  void send(size_t node, std::span<const std::string_view> argv) override {
    if (failing_sends_ > 0 && --failing_sends_ > 0) throw std::bad_alloc();
    LockClientWorld::send(node, argv);
  }
  int failing_sends_ = 0;

  void start_again() {
    client_ = make_client();
    sent_.clear();
    asked_names_.clear();
    ended_count_ = 0;
    is_dropped_ = false;
    connect();
  }
  // @return whether the allocation number `nth` of `event` failed.
  template <class Event>
  bool fails(int64_t nth, const Event &event) {
    countdown = nth;
    try {
      event();
    } catch (const std::bad_alloc &) {
      disconnect();
      connect();
      return true;
    }
    return std::exchange(countdown, 0) == 0;
  }
  bool fails_at_reply(int64_t nth, const MadeReply &made) {
    answer_names();
    sent_.pop_front();
    replied_count_++;
    return fails(nth, [&] { client_->on_reply(0, made.get(), now_); });
  }
  static MadeReply granted(int64_t server_ms) {
    return MadeReply::list(MadeReply::integer(1), MadeReply::text(std::string(kFence)),
                           MadeReply::integer(server_ms));
  }

  // The server grants the lock to `first`, and queues `second`, which then gets it as well.
  void expect_both_served(const RequestPtr &first, const RequestPtr &second) {
    bool is_second_queued = false;
    for (int i = 0; i < 40 && !is_second_queued; i++) {
      const std::string script = next_script();
      if (script.empty()) {
        advance(50 * kMs);
      } else if (script == "extend") {
        reply_count("extend", 1);
      } else {
        ASSERT_EQ(script, "acquire");
        is_second_queued = first->is_finished();
        is_second_queued ? reply_queued() : reply_granted();
      }
    }
    ASSERT_EQ(first->status.load(), Status::kOk) << first->message;
    ASSERT_TRUE(is_second_queued) << "its place was never asked for";
    EXPECT_EQ(state(first->lease), Lease::kHeld);
    EXPECT_EQ(second->status.load(), Status::kPending);
    EXPECT_EQ(release(first->lease)->status.load(), Status::kOk);
    EXPECT_EQ(second->status.load(), Status::kOk) << "handed off locally";
    EXPECT_EQ(second->lease->fence, first->lease->fence + 1);
  }
};

TEST_F(MemoryTest, out_of_memory_at_a_grant_serves_both_callers_later) {
  int64_t nth = 1;
  for (bool has_failed = true; has_failed && !HasFatalFailure(); nth++) {
    SCOPED_TRACE("allocation " + std::to_string(nth));
    start_again();
    const auto first = acquire();
    const auto second = acquire();
    has_failed = fails_at_reply(nth, granted(server_ms()));
    expect_both_served(first, second);
  }
  EXPECT_GE(nth, 5) << "the others need a new place, which needs memory";
}

TEST_F(MemoryTest, out_of_memory_at_a_pushed_grant_serves_both_callers_later) {
  int64_t nth = 1;
  for (bool has_failed = true; has_failed && !HasFatalFailure(); nth++) {
    SCOPED_TRACE("allocation " + std::to_string(nth));
    start_again();
    const auto first = acquire();
    const auto second = acquire();
    const std::string token = argument(0);
    reply_queued();
    has_failed = fails(nth, [&] { push_grant(token); });
    expect_both_served(first, second);
  }
  EXPECT_GE(nth, 5) << "the others need a new place, which needs memory";
}

TEST_F(MemoryTest, acquire_without_memory_leaves_nothing) {
  int64_t nth = 1;
  for (bool has_failed = true; has_failed; nth++) {
    SCOPED_TRACE("allocation " + std::to_string(nth));
    start_again();
    bool is_started = false;
    has_failed = fails(nth, [&] {
      acquire();
      is_started = true;
    });
    EXPECT_NE(client_->is_idle(), is_started) << "also not the name of the lock";
  }
  EXPECT_GE(nth, 5) << "a new lock needs memory";
}

TEST_F(MemoryTest, grant_to_a_single_caller_needs_no_memory) {
  start_again();
  const auto request = acquire();
  const MadeReply reply = granted(server_ms());
  EXPECT_FALSE(fails_at_reply(1, reply)) << "a grant allocates nothing";
  EXPECT_EQ(request->status.load(), Status::kOk);
  EXPECT_EQ(state(request->lease), Lease::kHeld);
}

TEST_F(MemoryTest, pushed_grant_to_a_single_caller_needs_no_memory) {
  start_again();
  const auto request = acquire();
  const std::string token = argument(0);
  reply_queued();
  const std::string message = grant_message(token);
  EXPECT_FALSE(fails(1, [&] { client_->on_push(0, message, now_); })) << "it allocates nothing";
  EXPECT_EQ(request->status.load(), Status::kOk);
  EXPECT_EQ(state(request->lease), Lease::kHeld);
}

TEST_F(MemoryTest, out_of_memory_loses_no_answer_to_a_recall) {
  int64_t nth = 1;
  for (bool has_failed = true; has_failed; nth++) {
    SCOPED_TRACE("allocation " + std::to_string(nth));
    start_again();
    const auto request = std::make_shared<Request>(Request::What::ask<operate::Recall>());
    request->name = "a name that is no short string";
    client_->start(request, now_);
    const auto answer = MadeReply::list(MadeReply::integer(2), MadeReply::integer(server_ms()));
    has_failed = fails_at_reply(nth, answer);
    EXPECT_EQ(request->status.load(), Status::kOk);
    EXPECT_EQ(request->task->as_recall()->heard, 2);
  }
  EXPECT_GE(nth, 3) << "it is remembered, which needs memory";
}

TEST_F(MemoryTest, destroying_the_client_allocates_nothing) {
  start_again();
  const auto lease = held();
  countdown = 1;
  client_.reset();
  EXPECT_EQ(std::exchange(countdown, 0), 1) << "a destructor allocates nothing";
  EXPECT_EQ(state(lease), Lease::kLost);
  EXPECT_EQ(lease->reason, "client is gone");
}

// Near the end of a lease the pause before the next try is shorter than the slack within which
// renewals that are nearly due go along.
TEST_F(MemoryTest, a_renewal_that_cannot_be_sent_is_tried_once_at_a_time) {
  constexpr int kMany = 1'000;
  start_again();
  const auto lease = held();
  advance(10'001 * kMs);
  reply_count("extend", 1);
  int tried = 0;
  while (state(lease) == Lease::kHeld) {
    now_ += 50 * kMs;
    failing_sends_ = kMany;
    client_->on_timer(now_);
    ASSERT_GT(failing_sends_, kMany - 5) << "a renewal, and maybe a name";
    tried += kMany - failing_sends_;
  }
  EXPECT_GT(tried, 10);
}

TEST_F(MemoryTest, out_of_memory_does_not_hide_a_loss) {
  int64_t nth = 1;
  for (bool has_failed = true; has_failed && !HasFatalFailure(); nth++) {
    SCOPED_TRACE("allocation " + std::to_string(nth));
    start_again();
    const auto lease = held();
    advance(10'001 * kMs);
    ASSERT_EQ(next_script(), "extend");
    const MadeReply taken = MadeReply::list(MadeReply::integer(0), MadeReply::integer(server_ms()),
                                            MadeReply::integer(0));
    has_failed = fails_at_reply(nth, taken);
    for (int i = 0; i < 10 && state(lease) == Lease::kHeld; i++) {
      if (next_script() == "extend") reply_count("extend", 0);
      advance(50 * kMs);
    }
    EXPECT_EQ(state(lease), Lease::kLost);
    EXPECT_EQ(ended_count_, 1) << "it is reported once";
  }
  EXPECT_GE(nth, 3) << "the reason is a text, which needs memory";
}

TEST_F(MemoryTest, out_of_memory_does_not_prevent_an_upgrade) {
  int64_t nth = 1;
  for (bool has_failed = true; has_failed && !HasFatalFailure(); nth++) {
    SCOPED_TRACE("allocation " + std::to_string(nth));
    start_again();
    lock::AcquireOptions options;
    options.mode = protocol::Mode::kRead;
    const auto lease = held(options);
    auto request = std::make_shared<Request>(Request::Op::kUpgrade);
    request->lease = lease;
    try {
      countdown = nth;
      client_->start(request, now_);
      has_failed = std::exchange(countdown, 0) == 0;
    } catch (const std::bad_alloc &) {
      EXPECT_EQ(lease->mode.load(), protocol::Mode::kRead) << "nothing has changed";
      request = upgrade(lease);
      has_failed = true;
    }
    for (int i = 0; i < 10 && !request->is_finished(); i++) {
      if (next_script() == "upgrade") reply_granted("1700000000000099");
      advance(30 * kMs);
    }
    EXPECT_EQ(request->status.load(), Status::kOk) << request->message;
    EXPECT_EQ(lease->mode.load(), protocol::Mode::kWrite);
  }
  EXPECT_GE(nth, 3) << "an upgrade is allocated";
}

}  // namespace
}  // namespace redlatch
