// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The library's own threads.
#pragma once

#include <pthread.h>

#include <csignal>
#include <new>

#include "base/status.h"

namespace redlatch::client {

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

// What an attempt to connect reports without a thread of its own. It may pass: the engine tries
// again later, as when no server is there, and must be given this even without memory for the text.
inline Outcome no_thread() noexcept {
  try {
    return failure(Status::kUnavailable, "no thread to connect with");
  } catch (const std::bad_alloc &) {
    return Outcome{Status::kUnavailable, {}};
  }
}

}  // namespace redlatch::client
