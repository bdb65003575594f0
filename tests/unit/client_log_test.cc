// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: a log keeps a bounded number of lines, says how many were dropped, and posts to every queue
// that watches. Method: lines without a client.
#include "runtime/client_log.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/limits.h"

namespace redlatch::runtime {
namespace {

std::string next(ClientLog &log, size_t limit = 1000) {
  std::string line;
  log.take(limit, line);
  return line;
}

TEST(ClientLogTest, a_slow_reader_gets_the_number_of_dropped_lines) {
  ClientLog log;
  const size_t count = kMaxLogLines + 10;
  for (size_t i = 0; i < count; i++) log.add(LogLevel::kInfo, std::to_string(i));
  std::string line;
  // A look with a buffer that is too small takes nothing, and the number still grows.
  EXPECT_GT(log.take(3, line), 3u);
  log.add(LogLevel::kError, "last");
  EXPECT_EQ(next(log), "warning 11 older lines were dropped: they were not taken in time");
  EXPECT_EQ(next(log), "info 11");
  size_t left = 0;
  for (std::string taken = next(log); !taken.empty(); taken = next(log)) {
    line = taken;
    left++;
  }
  EXPECT_EQ(line, "error last");
  EXPECT_EQ(left, kMaxLogLines - 1);
  EXPECT_EQ(log.take(1000, line), 0u);
}

TEST(ClientLogTest, each_queue_gets_one_tag_until_the_log_is_empty) {
  ClientLog log;
  const auto all = std::make_shared<Queue>();
  const auto errors = std::make_shared<Queue>();
  log.watch(LogLevel::kInfo, all, {.tag = 1});
  log.watch(LogLevel::kError, errors, {.tag = 2});
  log.add(LogLevel::kWarning, "one");
  log.add(LogLevel::kError, "two");
  log.add(LogLevel::kError, "three");
  EXPECT_EQ(all->next().tag, 1);
  EXPECT_EQ(all->next().tag, 0);
  EXPECT_EQ(errors->next().tag, 2);
  EXPECT_EQ(errors->next().tag, 0);
  log.watch(LogLevel::kError, errors, {.tag = 3});  // another tag, and there are lines
  EXPECT_EQ(errors->next().tag, 3);
  while (!next(log).empty()) continue;
  log.add(LogLevel::kError, "four");
  EXPECT_EQ(all->next().tag, 1);
  EXPECT_EQ(errors->next().tag, 3);
  EXPECT_EQ(errors->next().tag, 0);
}

TEST(ClientLogTest, an_ended_watch_gets_no_more_tags) {
  ClientLog log;
  const auto kept = std::make_shared<Queue>();
  const auto ended = std::make_shared<Queue>();
  auto freed = std::make_shared<Queue>();
  log.watch(LogLevel::kInfo, kept, {.tag = 1});
  log.watch(LogLevel::kInfo, ended, {.tag = 2});
  log.watch(LogLevel::kInfo, freed, {.tag = 3});
  const std::weak_ptr<Queue> gone = freed;
  freed.reset();
  EXPECT_TRUE(gone.expired());  // the log keeps no queue
  log.watch(LogLevel::kNone, ended, {.tag = 0});
  log.add(LogLevel::kInfo, "line");
  EXPECT_EQ(kept->next().tag, 1);
  EXPECT_EQ(ended->next().tag, 0);
  while (!next(log).empty()) continue;
  log.end_watches();
  log.add(LogLevel::kInfo, "line");
  EXPECT_EQ(kept->next().tag, 0);
}

}  // namespace
}  // namespace redlatch::runtime
