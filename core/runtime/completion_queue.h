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
//
// A queue may read for one client, its source: a thread that looks for a tag and finds none then
// reads what the server has sent, and no other thread has to be woken. Source and reader change
// together, under the mutex of the client.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "net/epoll_set.h"

namespace redlatch::runtime {

class Queue;

// A client that a queue may read for.
class Source {
 public:
  Source() = default;
  virtual ~Source() = default;
  Source(const Source &) = delete;
  Source &operator=(const Source &) = delete;

  // Read what has come, without waiting. @return whether there was something, so that the caller
  // looks for tags again.
  virtual bool read() noexcept = 0;
  // From now on `queue` reads. @return false: it reads for another source.
  virtual bool begin_reading_by(const std::shared_ptr<Queue> &queue) = 0;
  // If `queue` reads, it stops.
  virtual void end_reading_by(const Queue &queue) noexcept = 0;
};

class Queue {
 public:
  Queue();

  bool is_open() const { return ready_ && ready_->is_open(); }
  // True in a process forked from the one that made it: nothing else may be called there.
  bool is_forked() const;
  // Readable while there are tags, or something for the source; never to be read by others.
  int fd() const noexcept;
  // No tags are taken any more; further tags are dropped.
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
  // Readable without a tag: the source is to be read.
  void nudge() noexcept;

  // @return false if it has one already.
  [[nodiscard]] bool set_source(std::weak_ptr<Source> source) noexcept;
  std::shared_ptr<Source> source() const noexcept;
  void drop_source() noexcept;
  // The connection of the source; remove it before it is closed.
  void add_socket(int socket) noexcept;
  void remove_socket(int socket) noexcept;

  // Take the oldest tag; 0: the queue is empty. Without a source that costs no system call.
  int64_t next() noexcept;
  // Wait for one, at most until `limit`; 0: none came.
  int64_t wait(Nanos limit) noexcept;

  // Whoever pushed lists it here until it is signalled. Guarded by the mutex of that client: push()
  // says so to one at a time.
  std::shared_ptr<Queue> next_due;

 private:
  int64_t take() noexcept;
  std::shared_ptr<Source> begin_reading() noexcept;
  void signal_locked() noexcept;

  const uint32_t fork_count_;

  mutable std::mutex mutex_;  // guards what follows
  // Without a source only its event is polled.
  std::optional<net::EpollSet> ready_{std::in_place};
  bool is_reader_ = false;  // had a source once: fd() stays the same
  std::weak_ptr<Source> source_;
  size_t reading_count_ = 0;  // threads in source_->read(): they take what they push
  std::vector<int64_t> tags_;
  size_t head_ = 0;             // those before it were taken
  size_t admitted_count_ = 0;   // tags that may still come
  bool is_signal_due_ = false;  // a thread is about to call signal()
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

}  // namespace redlatch::runtime
