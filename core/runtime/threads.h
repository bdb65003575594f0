// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The library's own threads.
#pragma once

#include <pthread.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>

#include "base/status.h"
#include "base/text.h"

namespace redlatch::runtime {

// Start a thread with all signals blocked: they belong to the threads of the host. @return 0 or why
// not.
inline int start_thread(pthread_t &thread, void *(*body)(void *), void *argument) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = pthread_create(&thread, nullptr, body, argument);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return error;
}

// No thread could be started, and why. Callers that do not distinguish it treat it as out of
// memory.
class NoThread : public std::bad_alloc {
 public:
  explicit NoThread(int error) {
    std::array<char, 80> buffer{};
    const char *reason = error_text(error, buffer);
    std::snprintf(text_.data(), text_.size(), "cannot start a thread: %s", reason);
  }
  const char *what() const noexcept override { return text_.data(); }

 private:
  std::array<char, 128> text_{};
};

// The result of an attempt to connect that got no thread. The failure may be temporary: the client
// retries later, as without a server, and must get this result even without memory for the text.
inline Outcome no_thread(int error) noexcept {
  return failure_if_memory(Status::kUnavailable,
                           [error] { return std::string(NoThread(error).what()); });
}

}  // namespace redlatch::runtime
