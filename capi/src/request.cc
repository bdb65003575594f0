// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Requests: starting without waiting, and what became of them.
#include "handles.h"

using namespace redlatch;
using namespace redlatch::capi;

namespace {

std::shared_ptr<runtime::Runtime> runtime_of(const rl_client *client) { return client->runtime; }
std::shared_ptr<runtime::Runtime> runtime_of(const rl_redlock *redlock) { return redlock->runtime; }
std::shared_ptr<runtime::Runtime> runtime_of(const rl_lease *lease) { return lease->runtime; }

template <class Handle>
Outcome check_handle(const Handle *handle, const char *name) {
  if (handle == nullptr) {
    return failure(Status::kInvalid, std::string(name) + " is NULL, which is not allowed here");
  }
  if (runtime_of(handle)->is_forked()) return failure(Status::kForked, rl_status_text(RL_E_FORKED));
  return {};
}

// Start a request of the client of `handle`, once `fill` has checked and written its arguments. A
// bad argument is a finished request.
template <class Handle, class Fill>
rl_request *start(const Handle *handle, const char *handle_name, Request::Op op, const Fill &fill) {
  return guarded<rl_request *>(nullptr, nullptr, [&]() -> rl_request * {
    auto started = std::make_unique<rl_request>();
    started->request = std::make_shared<Request>(op);
    Request &request = *started->request;
    auto outcome = check_handle(handle, handle_name);
    if (outcome.ok()) outcome = fill(request);
    if (outcome.ok()) {
      try {
        runtime_of(handle)->start(started->request);
        started->runtime = runtime_of(handle);
      } catch (const runtime::NoThread &why) {
        outcome = failure(Status::kNoMemory, why.what());
      }
    }
    if (!outcome.ok()) {
      request.message = std::move(outcome.message);
      request.status = outcome.status;
    }
    return started.release();
  });
}

bool is_grant(const Request &request) {
  return request.op == Request::Op::kAcquire && request.status.load() == Status::kOk;
}

}  // namespace

extern "C" {

rl_request *rl_client_connect_start(rl_client *client, int64_t wait_ms) {
  return start(client, "client", Request::Op::kConnect, [&](Request &request) {
    request.wait_ms = wait_ms;
    return runtime::check_wait(wait_ms);
  });
}

rl_request *rl_acquire_start(rl_client *client, const char *name, size_t name_len, int64_t wait_ms,
                             const rl_acquire_options *options) {
  return start(client, "client", Request::Op::kAcquire, [&](Request &request) {
    return fill_acquire(request, name, name_len, wait_ms, options);
  });
}

rl_request *rl_redlock_connect_start(rl_redlock *redlock, int64_t wait_ms) {
  return start(redlock, "redlock", Request::Op::kConnect, [&](Request &request) {
    request.wait_ms = wait_ms;
    return runtime::check_wait(wait_ms);
  });
}

rl_request *rl_redlock_acquire_start(rl_redlock *redlock, const char *name, size_t name_len,
                                     int64_t wait_ms, const rl_acquire_options *options) {
  return start(redlock, "redlock", Request::Op::kAcquire, [&](Request &request) {
    return fill_redlock(request, name, name_len, wait_ms, options);
  });
}

rl_request *rl_rw_acquire_read_start(rl_client *client, const char *name, size_t name_len,
                                     int64_t wait_ms, const rl_acquire_options *options) {
  return start(client, "client", Request::Op::kAcquire, [&](Request &request) {
    return fill_rw(request, wire::Mode::kRead, name, name_len, wait_ms, options);
  });
}

rl_request *rl_rw_acquire_write_start(rl_client *client, const char *name, size_t name_len,
                                      int64_t wait_ms, const rl_acquire_options *options) {
  return start(client, "client", Request::Op::kAcquire, [&](Request &request) {
    return fill_rw(request, wire::Mode::kWrite, name, name_len, wait_ms, options);
  });
}

rl_request *rl_rw_upgrade_start(rl_lease *lease, int64_t wait_ms) {
  return start(lease, "lease", Request::Op::kUpgrade, [&](Request &request) {
    request.lease = lease->lease;
    request.wait_ms = wait_ms;
    return runtime::check_wait(wait_ms);
  });
}

rl_request *rl_rw_downgrade_start(rl_lease *lease) {
  return start(lease, "lease", Request::Op::kDowngrade, [&](Request &request) {
    request.lease = lease->lease;
    return Outcome{};
  });
}

rl_request *rl_release_start(rl_lease *lease) {
  return start(lease, "lease", Request::Op::kRelease, [&](Request &request) {
    request.lease = lease->lease;
    return Outcome{};
  });
}

rl_request *rl_extend_start(rl_lease *lease, int64_t lease_ms) {
  return start(lease, "lease", Request::Op::kExtend, [&](Request &request) {
    request.lease = lease->lease;
    auto outcome = runtime::check_lease(lease_ms);
    if (outcome.ok()) request.extend_to = lease_ms * kMs;
    return outcome;
  });
}

rl_request *rl_lease_detach_start(rl_lease *lease) {
  return start(lease, "lease", Request::Op::kDetach, [&](Request &request) {
    request.lease = lease->lease;
    return Outcome{};
  });
}

rl_status rl_request_wait(rl_request *request, int64_t wait_ms) {
  if (request == nullptr || wait_ms < -1) return RL_E_INVALID;
  if (request->runtime && request->runtime->is_forked()) return RL_E_FORKED;
  if (!request->runtime || request->request->is_finished()) return rl_request_status(request);
  return guarded_status(nullptr, [&](rl_error *e) {
    answer(e, request->runtime->wait(*request->request, runtime::limit_of(wait_ms)));
  });
}

rl_status rl_request_cancel(rl_request *request) {
  if (request == nullptr) return RL_E_INVALID;
  if (request->runtime && request->runtime->is_forked()) return RL_E_FORKED;
  if (!request->runtime || request->request->is_finished()) return rl_request_status(request);
  return guarded_status(
      nullptr, [&](rl_error *e) { answer(e, request->runtime->cancel(*request->request)); });
}

rl_status rl_request_status(const rl_request *request) {
  if (request == nullptr) return RL_E_INVALID;
  return static_cast<rl_status>(request->request->status.load(std::memory_order_acquire));
}

const char *rl_request_message(const rl_request *request) {
  if (request == nullptr || !request->request->is_finished()) return "";
  const std::string &message = request->request->message;
  const rl_status status = rl_request_status(request);
  return message.empty() && status != RL_OK ? rl_status_text(status) : message.c_str();
}

rl_lease *rl_request_take_lease(rl_request *request) {
  if (request == nullptr || !request->runtime || request->runtime->is_forked()) return nullptr;
  if (!is_grant(*request->request)) return nullptr;
  return guarded<rl_lease *>(nullptr, nullptr, [&]() -> rl_lease * {
    auto handle = std::make_unique<rl_lease>();
    if (request->is_taken.exchange(true)) return nullptr;
    handle->runtime = request->runtime;
    handle->lease = lease_of(*request->request);
    return handle.release();
  });
}

void rl_request_free(rl_request *request) {
  if (request == nullptr || (request->runtime && request->runtime->is_forked())) return;
  // A finished one, too, may be about to post its tag.
  if (request->is_watched.load()) rl_request_watch(request, nullptr, 0);
  if (request->runtime && !request->request->is_finished()) rl_request_cancel(request);
  if (is_grant(*request->request) && !request->is_taken.exchange(true)) {
    guarded_status(nullptr,
                   [&](rl_error *) { request->runtime->abandon(*lease_of(*request->request)); });
  }
  delete request;
}

}  // extern "C"
