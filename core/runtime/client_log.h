// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// ClientLog: the last lines about background events of one client, which no call reports, until the
// program takes them. Any thread. The library prints nothing itself.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "base/thread_annotations.h"
#include "driver/log_lines.h"
#include "runtime/completion_queue.h"

namespace redlatch::runtime {

using driver::LogLevel;

class ClientLog final : public driver::Log {
 public:
  // Add one line: the name of its level, then `text`. Without memory the line is lost.
  void add(LogLevel level, std::string_view text) noexcept override;

  // In a handler of all exceptions. One that is no lack of memory is a defect: it is logged, and
  // handled as the lack of memory is. @return which of the two it was.
  Status add_caught() noexcept;

  // Post `event` to `queue` when a line of `level`, or of a more severe one, is added: once, until
  // the log is empty; now if the log has lines of any level. A queue has one watch: it replaces the
  // watch before, and kNone ends it. Throws std::bad_alloc, and then nothing has changed.
  void watch(LogLevel level, const std::shared_ptr<Queue> &queue, const QueueEvent &event);
  // End the watches of all queues.
  void end_watches();

  // Move the oldest line to `line`, if it has at most `limit` bytes. @return its size; 0 if the log
  // is empty.
  size_t take(size_t limit, std::string &line);

 private:
  struct Watch {
    std::weak_ptr<Queue> queue;
    LogLevel level;
    QueueEvent event;
    bool is_posted;  // since the log was empty
  };

  Mutex mutex_;
  driver::LogLines lines_ GUARDED_BY(mutex_);
  std::vector<Watch> watches_ GUARDED_BY(mutex_);
  std::atomic<bool> has_lines_{false};  // so that reading an empty log takes no lock
};

}  // namespace redlatch::runtime
