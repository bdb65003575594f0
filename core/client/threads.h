// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The library's own threads.
#pragma once

#include <pthread.h>

#include <csignal>

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

}  // namespace redlatch::client
