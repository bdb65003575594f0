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
// A queue may read for one client, its source: whoever takes a tag and finds none then reads in its
// own thread what the server has sent, and no other thread has to be woken.
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

class Queue;

// What a queue may read for.
class Source {
 public:
  Source() = default;
  virtual ~Source() = default;
  Source(const Source &) = delete;
  Source &operator=(const Source &) = delete;

  // Read what has come, without waiting. @return whether there was something, so that another look
  // for tags is worth it.
  virtual bool read() noexcept = 0;
  // `queue` reads from now on, ..
  virtual void begin_reading_by(std::shared_ptr<Queue> queue) = 0;
  // .. or does not any more, if it did.
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
  // Readable without a tag: the source is to be read.
  void nudge() noexcept;

  // Of which there is one at a time: false if it has another one.
  bool set_source(const std::shared_ptr<Source> &source) noexcept;
  // @return which it was.
  std::shared_ptr<Source> drop_source() noexcept;
  // What belongs to the source; a closed socket leaves by itself.
  void add_socket(int socket) noexcept;
  void remove_socket(int socket) noexcept;

  // Take the oldest tag; 0: there is none, found out without a system call, but for a source that
  // has to be read.
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
  // The event is what is polled as long as there is no source.
  std::optional<io::Poller> ready_{std::in_place};
  bool is_reader_ = false;  // had a source at some time
  std::weak_ptr<Source> source_;
  size_t reading_count_ = 0;  // threads in source_->read(): they take what they push
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
