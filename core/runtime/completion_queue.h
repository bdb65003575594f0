// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Queue: the events of watches, for callers that wait for many things at once, and a descriptor
// that is readable while the queue has events. Any thread, any number of clients. Its size is not
// limited: each watch that a caller sets adds at most one event.
//
// The mutex is a leaf: it may be taken with a client's mutex held, and no other mutex is taken
// under it. So push() makes no system call; if it returns true, its caller calls signal() once the
// client's mutex is free. One signal covers all events until they are taken. Log lines are rare, so
// the log uses post(), which pushes and signals at once.
//
// A queue may read for one client, its source: a thread that takes from the empty queue then reads
// what the server has sent, and no other thread has to be woken. The queue's source_ and the
// client's reader_ change together, under the mutex of the client.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/thread_annotations.h"
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

  // Read what has arrived, without waiting. @return whether something had, so that the caller looks
  // for events again.
  virtual bool read() noexcept = 0;
  // Make `queue` the reader. @return false if it reads for another source.
  virtual bool begin_reading_by(const std::shared_ptr<Queue> &queue) = 0;
  // Stop, if `queue` is the reader.
  virtual void end_reading_by(const Queue &queue) noexcept = 0;
};

// The program's handle that a watch was set on. It may be freed before the event is taken.
struct Watched {
  explicit Watched(void *of) : handle(of) {}
  std::atomic<void *> handle;  // nullptr once it is freed
};

// As rl_event of redlatch.h, which has the same numbers.
struct QueueEvent {
  enum class Kind : uint8_t { kPosted = 1, kRequest, kLease, kLog, kCredentials, kRecall };

  int64_t tag = 0;  // 0: there is no event
  Kind kind = Kind::kPosted;
  int32_t status = 0;  // the result of a request, the state of a lease
  std::shared_ptr<const Watched> watched = {};
};

class Queue {
 public:
  Queue();

  bool is_open() const;
  // True in a process forked from the one that made it: nothing else may be called there.
  bool is_forked() const;
  // Readable while the queue has events, or its source has input. Only to be polled.
  int fd() const noexcept;
  // Close the descriptor; further events are dropped.
  void close() noexcept;

  // Make room for one more event, so that push() cannot fail; throws std::bad_alloc.
  void admit();
  // Give back the room of an event that was admitted and will not be pushed.
  void dismiss() noexcept;
  // Append an event that was admitted. @return whether the caller has to call signal().
  [[nodiscard]] bool push(QueueEvent event) noexcept;
  void signal() noexcept;
  // admit(), push() and signal(); throws std::bad_alloc.
  void post(QueueEvent event);
  // Make the descriptor readable without an event, so that a thread reads the source.
  void nudge() noexcept;

  // @return false if it has one already.
  [[nodiscard]] bool set_source(std::weak_ptr<Source> source) noexcept;
  std::shared_ptr<Source> source() const noexcept;
  void drop_source() noexcept;
  // The socket of the source; remove it before it is closed. @return 0, or why it is not polled.
  [[nodiscard]] int add_socket(int socket) noexcept;
  void remove_socket(int socket) noexcept;

  // Take the oldest event; tag 0 if the queue is empty. Taking from an empty queue costs no system
  // call unless it has a source.
  QueueEvent next() noexcept;
  // Wait for an event and take it, at most until `limit`; tag 0 if none came.
  QueueEvent wait(Nanos limit) noexcept;

  // The next queue in the list of those that a client has to signal.
  std::shared_ptr<Queue> next_due UNGUARDED("push() returns true to one client at a time");

 private:
  QueueEvent take() noexcept;
  std::shared_ptr<Source> begin_reading() noexcept;
  void signal_locked() noexcept REQUIRES(mutex_);

  const uint32_t fork_count_;

  mutable Mutex mutex_;
  // Without a source only its event is polled.
  std::optional<net::EpollSet> ready_ GUARDED_BY(mutex_){std::in_place};
  bool is_reader_ GUARDED_BY(mutex_) = false;  // had a source once; fd() must not change back
  std::weak_ptr<Source> source_ GUARDED_BY(mutex_);
  size_t reading_count_ GUARDED_BY(mutex_) =
      0;  // threads in source_->read(): they take what they push
  std::vector<QueueEvent> events_ GUARDED_BY(mutex_);
  size_t head_ GUARDED_BY(mutex_) = 0;             // events before it were taken
  size_t admitted_count_ GUARDED_BY(mutex_) = 0;   // events that may still come
  bool is_signal_due_ GUARDED_BY(mutex_) = false;  // a thread is about to call signal()
  bool is_ready_ GUARDED_BY(mutex_) = false;       // the descriptor is readable
};

// Where to post the end of a request or a lease, once.
struct EndWatch {
  std::shared_ptr<Queue> queue;  // nullptr: no watch was set, or its event was posted
  QueueEvent event;

  // Remove the watch without an event.
  void forget() noexcept {
    if (queue) std::exchange(queue, nullptr)->dismiss();
  }
};

}  // namespace redlatch::runtime
