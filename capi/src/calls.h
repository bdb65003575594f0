// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The common part of most entries: check the handle, make a request, check and write its arguments,
// and run or start it. `fill` checks and writes, for the call that waits and the one that starts.
#pragma once

#include <cassert>
#include <type_traits>

#include "handles.h"

namespace redlatch::capi {

inline const char *name_of(const rl_client *) { return "client"; }
inline const char *name_of(const rl_lease *) { return "lease"; }
inline const char *name_of(const rl_list *) { return "list"; }

template <class Handle>
std::shared_ptr<Request> make_request(const Handle *handle, Request::What what) {
  auto request = Request::make(what);
  if constexpr (std::is_same_v<Handle, rl_lease>) {
    if (handle != nullptr) request->lease = handle->lease;
  }
  return request;
}

// True if `handle` may be used; else `err` has the reason.
template <class Handle>
bool is_good(const Handle *handle, rl_error *err) noexcept {
  if (handle == nullptr) return null_argument(err, name_of(handle)), false;
  if (handle->runtime->is_forked()) return forked(err), false;
  return true;
}

// Some keep the request that they fill.
template <class Fill>
Outcome fill_in(const Fill &fill, const std::shared_ptr<Request> &request) {
  if constexpr (std::is_invocable_v<const Fill &, const std::shared_ptr<Request> &>) {
    return fill(request);
  } else {
    return fill(*request);
  }
}

// Run a request and wait for it.
template <class Handle, class Fill>
rl_status run(const Handle *handle, Request::What what, rl_error *err, const Fill &fill) {
  rl_error local;
  if (err == nullptr) err = &local;
  if (!is_good(handle, err)) return err->status;
  return guarded_status(err, [&](rl_error *e) {
    const auto request = make_request(handle, what);
    if (auto outcome = fill_in(fill, request); !outcome.ok()) return (void)answer(e, outcome);
    handle->runtime->run(request);
    answer(e, *request);
  });
}

// .. and for the lease that it gives.
template <class Handle, class Fill>
rl_lease *run_for_lease(const Handle *handle, Request::What what, rl_error *err, const Fill &fill) {
  if (!is_good(handle, err)) return nullptr;
  return guarded<rl_lease *>(err, nullptr, [&]() -> rl_lease * {
    const auto request = make_request(handle, what);
    if (auto outcome = fill(*request); !outcome.ok()) return answer(err, outcome), nullptr;
    // Before the server is asked, so that a grant cannot fail for want of memory.
    auto lease = std::make_unique<rl_lease>();
    lease->runtime = handle->runtime;
    lease->lease = lease_of(*request);
    handle->runtime->run(request);
    return answer(err, *request) == RL_OK ? lease.release() : nullptr;
  });
}

// Start a request. A bad argument is a finished request.
template <class Handle, class Fill>
rl_request *start(const Handle *handle, Request::What what, const Fill &fill) {
  return guarded<rl_request *>(nullptr, nullptr, [&]() -> rl_request * {
    auto started = std::make_unique<rl_request>();
    started->request = make_request(handle, what);
    Outcome outcome;
    if (handle == nullptr) {
      outcome = is_null(name_of(handle));
    } else if (handle->runtime->is_forked()) {
      outcome = failure(Status::kForked, rl_status_text(RL_E_FORKED));
    } else {
      outcome = fill_in(fill, started->request);
    }
    if (outcome.ok()) {
      try {
        handle->runtime->start(started->request);
        started->runtime = handle->runtime;
      } catch (const runtime::NoThread &why) {
        outcome = failure(Status::kNoMemory, why.what());
      }
    }
    assert(outcome.ok() == (started->runtime != nullptr));
    if (!outcome.ok()) {
      started->request->message = std::move(outcome.message);
      started->request->status = outcome.status;
    }
    return started.release();
  });
}

inline Outcome fill_name(Request &request, const char *name, size_t name_len) {
  auto outcome = runtime::check_name(text_of(name, name_len));
  if (outcome.ok()) request.name = text_of(name, name_len);
  return outcome;
}

// Arguments, for a call that waits and for one that starts.
inline auto no_arguments() {
  return [](Request &) { return Outcome{}; };
}
inline auto lock_named(const char *name, size_t name_len) {
  return [=](Request &request) { return fill_name(request, name, name_len); };
}
inline auto wait_of(int64_t wait_ms) {
  return [wait_ms](Request &request) {
    request.wait_ms = wait_ms;
    return runtime::check_wait(wait_ms);
  };
}
inline auto extension_to(int64_t ttl_ms) {
  return [ttl_ms](Request &request) {
    auto outcome = config::check_ttl(ttl_ms);
    if (outcome.ok()) request.extend_to = ttl_ms * kMs;
    return outcome;
  };
}

}  // namespace redlatch::capi
