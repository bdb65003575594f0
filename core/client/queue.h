// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Queue: tags of what has finished, for callers that wait for many things at once, and a descriptor
// that is readable while there are some. Any thread, any number of clients.
//
// The mutex is a leaf: it is taken with a client's mutex held, and nothing is taken below it. So
// push() makes no system call; whoever pushed first calls signal() once the client's mutex is free.
// One signal stands for all tags that come before they are taken. Those of the log are an
// exception: lines are rare, and post() does all of it. It holds as many tags as were asked for:
// how many that is the caller decides.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "io/watch.h"

namespace redlatch::client {

class Queue {
 public:
  Queue();

  bool is_open() const { return ready_ && ready_->is_open(); }
  // True in a process forked from the one that made it: nothing else may be called there.
  bool is_forked() const;
  // Readable while there are tags; never to be read by others.
  int fd() const { return ready_ ? ready_->fd() : -1; }
  // Nobody will take tags any more; what still comes is dropped.
  void close() noexcept;

  // Make room for one more tag, so that push() cannot fail; throws std::bad_alloc.
  void admit();
  // A tag that was admitted will not come.
  void dismiss() noexcept;
  // Append a tag that was admitted. @return whether the caller has to call signal().
  [[nodiscard]] bool push(int64_t tag) noexcept;
  void signal() noexcept;
  // All of it at once; throws std::bad_alloc.
  void post(int64_t tag);

  // Take the oldest tag; 0: there is none, found out without a system call.
  int64_t take() noexcept;
  // Wait for one, at most until `limit`; 0: none came.
  int64_t wait(Nanos limit) noexcept;

  // Whoever pushed lists it here until it is signalled. Guarded by the mutex of that client: push()
  // says so to one at a time.
  std::shared_ptr<Queue> next_due;

 private:
  const uint32_t fork_count_;

  std::mutex mutex_;  // guards what follows
  std::optional<io::Event> ready_{std::in_place};
  std::vector<int64_t> tags_;
  size_t head_ = 0;             // those before it were taken
  size_t admitted_count_ = 0;   // tags that may still come
  bool is_signal_due_ = false;  // somebody is about to call signal()
  bool is_ready_ = false;       // the descriptor is readable
};

// Where the end of something is to be told, once.
struct Watcher {
  std::shared_ptr<Queue> queue;  // none: nobody asked, or it was told
  int64_t tag = 0;

  // It will not be told.
  void forget() noexcept {
    if (queue) std::exchange(queue, nullptr)->dismiss();
  }
};

}  // namespace redlatch::client
