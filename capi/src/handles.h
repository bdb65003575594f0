// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The objects behind the opaque handles of redlatch.h, and functions that every entry uses.
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cassert>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/thread_annotations.h"
#include "config/options.h"
#include "redlatch/redlatch.h"
#include "runtime/arguments.h"
#include "runtime/runtime.h"
#include "runtime/threads.h"

// A status and its message.
struct rl_error {
  rl_error() { short_text[0] = '\0'; }  // every call makes one: clearing the rest would cost time

  void set_message(std::string_view text) noexcept;
  const char *message() const { return long_text ? long_text.get() : short_text.data(); }

  rl_status status = RL_OK;
  std::array<char, 252> short_text;   // most messages fit
  std::unique_ptr<char[]> long_text;  // a longer one, such as that of a large quorum
};

struct rl_client_options {
  redlatch::config::Options options;
};

struct rl_acquire_options {
  redlatch::runtime::AcquireOptions options;
  // The refusals of setters, for the acquire that uses the options. An option that is set right
  // after all has no entry any more. The bits are those of config::bit_of().
  std::vector<std::pair<uint64_t, redlatch::Outcome>> mistakes;
  uint64_t without_memory = 0;
};

struct rl_names {
  std::vector<redlatch::runtime::NamedMode> names;
};

// The events of a handle's watches share one Watched, made by the first watch.
class WatchedHandle {
 public:
  // The handle is about to be freed: no event has it from now on.
  void forget() noexcept {
    const redlatch::MutexLock lock(mutex_);
    if (watched_) watched_->handle.store(nullptr);
  }
  // Any thread. Throws std::bad_alloc.
  redlatch::runtime::QueueEvent event(redlatch::runtime::QueueEvent::Kind kind, int64_t tag,
                                      void *handle) {
    const redlatch::MutexLock lock(mutex_);
    if (!watched_) watched_ = std::make_shared<redlatch::runtime::Watched>(handle);
    return {.tag = tag, .kind = kind, .watched = watched_};
  }

 private:
  redlatch::Mutex mutex_;
  std::shared_ptr<redlatch::runtime::Watched> watched_ GUARDED_BY(mutex_);
};

// One server, or a quorum of several.
struct rl_client {
  std::shared_ptr<redlatch::runtime::Runtime> runtime;
  WatchedHandle watched;
};

// Leases and requests keep the runtime alive, so that handles may be freed in any order.
struct rl_lease {
  std::shared_ptr<redlatch::runtime::Runtime> runtime;
  std::shared_ptr<redlatch::runtime::Lease> lease;
  WatchedHandle watched;
};

struct rl_queue {
  std::shared_ptr<redlatch::runtime::Queue> queue;
};

struct rl_request {
  std::shared_ptr<redlatch::runtime::Runtime> runtime;  // nullptr: finished when it was made
  std::shared_ptr<redlatch::runtime::Request> request;
  std::atomic<bool> is_taken{false};
  std::atomic<bool> is_watched{false};  // has been, at some time
  WatchedHandle watched;
};

namespace redlatch::capi {

using runtime::Lease;
using runtime::Request;

// Set `err`, if there is one. Without memory for a long message it gets the beginning of it.
// @return the status.
rl_status answer(rl_error *err, Status status, std::string_view message = {}) noexcept;
inline rl_status answer(rl_error *err, const Outcome &outcome) noexcept {
  return answer(err, outcome.status, outcome.message);
}
inline rl_status answer(rl_error *err, const Request &request) noexcept {
  return answer(err, request.status.load(), request.message);
}

inline rl_status forked(rl_error *err) noexcept {
  return answer(err, Status::kForked,
                "the client was opened before fork(): open another one in this process");
}
inline Outcome is_null(const char *name) {
  return failure(Status::kInvalid, std::string(name) + " must not be NULL");
}
inline rl_status null_argument(rl_error *err, const char *name) noexcept {
  try {
    return answer(err, is_null(name));
  } catch (const std::bad_alloc &) {
    return answer(err, Status::kInvalid);
  }
}

// Text of a caller. NULL is the empty text, which is right with the length 0 only.
inline Outcome check_text(const char *what, const char *text, size_t size) {
  return text == nullptr && size > 0 ? is_null(what) : Outcome{};
}
inline std::string_view text_of(const char *text, size_t size) {
  return text == nullptr ? std::string_view() : std::string_view(text, size);
}

// While it exists, pthread_cancel() of this thread waits. The end of a thread inside a call would
// unwind noexcept functions, which ends the process, or leave mutexes locked (musl). So a call that
// may make a system call, or free what does, has one.
class NoCancel {
 public:
  NoCancel() noexcept { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NoCancel() { pthread_setcancelstate(before_, nullptr); }
  NoCancel(const NoCancel &) = delete;
  NoCancel &operator=(const NoCancel &) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

// Run `body`, which answers through `err`. No exception leaves.
template <class Result, class Body>
Result guarded(rl_error *err, Result on_failure, const Body &body) noexcept {
  const NoCancel no_cancel;
  try {
    return body();
  } catch (const runtime::NoThread &why) {
    answer(err, Status::kNoMemory, why.what());
  } catch (const std::bad_alloc &) {
    answer(err, Status::kNoMemory);
  } catch (...) {
    answer(err, Status::kInternal);
  }
  return on_failure;
}

// The same for entries that write a text: without memory it is empty.
template <class Body>
size_t guarded_text(char *buffer, size_t buffer_size, const Body &body) noexcept {
  if (buffer != nullptr && buffer_size > 0) *buffer = '\0';
  return guarded(nullptr, size_t{0}, body);
}

// The same for entries that return the status: `body` gets an error that is never NULL.
template <class Body>
rl_status guarded_status(rl_error *err, const Body &body) noexcept {
  rl_error local;
  rl_error *target = err == nullptr ? &local : err;
  guarded(target, 0, [&] {
    body(target);
    return 0;
  });
  return target->status;
}

// Copy `text` to a caller's buffer, with a NUL, as much as fits. @return the full length.
size_t copy_out(std::string_view text, char *buffer, size_t buffer_size);

// Check the arguments of an acquisition by `client`, and write them to `request`. The options name
// the mode.
Outcome fill_acquire(const rl_client &client, Request &request, const char *name, size_t name_len,
                     int64_t wait_ms, const rl_acquire_options *options);
// The same for a read-write lock in `mode`, whatever the options name.
Outcome fill_rw(const rl_client &client, Request &request, runtime::Mode mode, const char *name,
                size_t name_len, int64_t wait_ms, const rl_acquire_options *options);
// The same for all of `names`.
Outcome fill_acquire_all(const rl_client &client, Request &request,
                         const std::vector<runtime::NamedMode> &names, int64_t wait_ms,
                         const rl_acquire_options *options);
// The same for a flight.
Outcome fill_flight(const rl_client &client, Request &request, const char *name, size_t name_len,
                    int64_t wait_ms, const rl_acquire_options *options);
// The same for taking over a detached lease.
Outcome fill_attach(Request &request, std::string_view name, std::string_view token, int64_t fence,
                    const rl_acquire_options *options);

// Every lease behind this ABI is made here.
inline std::shared_ptr<Lease> lease_of(const Request &request) {
  assert(request.lease != nullptr);
  return std::static_pointer_cast<Lease>(request.lease);
}

}  // namespace redlatch::capi
