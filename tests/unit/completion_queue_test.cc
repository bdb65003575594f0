// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: a queue has its tags in order, each once; its descriptor is readable exactly as long as
// there are tags, however they came. Method: a queue without a client; a source in memory.
#include "runtime/completion_queue.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <memory>
#include <thread>

namespace redlatch::runtime {
namespace {

bool is_readable(const Queue &queue) {
  pollfd polled{queue.fd(), POLLIN, 0};
  return poll(&polled, 1, 0) == 1;
}

TEST(CompletionQueueTest, tags_come_in_order_and_once) {
  Queue queue;
  EXPECT_FALSE(is_readable(queue));
  for (int64_t tag = 1; tag <= 200; ++tag) queue.post({.tag = tag});
  queue.post({.tag = -7});
  for (int64_t tag = 1; tag <= 200; ++tag) {
    ASSERT_TRUE(is_readable(queue));
    ASSERT_EQ(queue.next().tag, tag);
    queue.post({.tag = 1000 + tag});  // behind the others, while the taken ones make room
  }
  EXPECT_EQ(queue.next().tag, -7);
  for (int64_t tag = 1; tag <= 200; ++tag) ASSERT_EQ(queue.wait(kNever).tag, 1000 + tag);
  EXPECT_FALSE(is_readable(queue));
  EXPECT_EQ(queue.next().tag, 0);
}

TEST(CompletionQueueTest, the_descriptor_is_readable_until_all_tags_are_taken) {
  Queue queue;
  for (int i = 0; i < 3; ++i) queue.admit();
  EXPECT_TRUE(queue.push({.tag = 1}));
  EXPECT_FALSE(queue.push({.tag = 2}));
  EXPECT_EQ(queue.next().tag, 1);
  queue.signal();  // late: a tag is left
  EXPECT_TRUE(is_readable(queue));
  EXPECT_EQ(queue.next().tag, 2);
  EXPECT_FALSE(is_readable(queue));
  queue.dismiss();
}

TEST(CompletionQueueTest, a_wait_returns_the_tag_that_another_thread_posts) {
  Queue queue;
  std::thread poster([&queue] { queue.post({.tag = 9}); });
  EXPECT_EQ(queue.wait(kNever).tag, 9);
  poster.join();
}

TEST(CompletionQueueTest, a_closed_queue_drops_tags) {
  Queue queue;
  queue.post({.tag = 1});
  queue.close();
  queue.post({.tag = 2});
  EXPECT_EQ(queue.fd(), -1);
  EXPECT_EQ(queue.next().tag, 1);
  EXPECT_EQ(queue.next().tag, 0);
}

}  // namespace
}  // namespace redlatch::runtime
