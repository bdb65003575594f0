// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Requests and leases of callers: those of the engine, and who waits for them. What is added here
// is guarded by the client's mutex.
#pragma once

#include "engine/subjects.h"
#include "runtime/completion_queue.h"
#include "runtime/waiter.h"

namespace redlatch::runtime {

struct Request : engine::Request {
  using engine::Request::Request;

  Waiter *waiters = nullptr;  // threads that wait for it
  Watcher watcher;
};

struct Lease : engine::Lease {
  Watcher watcher;
};

}  // namespace redlatch::runtime
