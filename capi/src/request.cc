// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Requests: starting without waiting, and their results.
#include "calls.h"

using namespace redlatch;
using namespace redlatch::capi;

namespace {

bool is_grant(const Request &request) {
  // First: the rest may change until then.
  if (request.status.load() != Status::kOk) return false;
  if (request.is_flight()) return request.arguments->value == nullptr;
  return request.op == Request::Op::kAcquire || request.op == Request::Op::kAttach;
}

// No caller will release the lease of `request`.
void give_back(runtime::Runtime &runtime, const Request &request) {
  if (request.op == Request::Op::kAttach) return runtime.detach_again(lease_of(request));
  runtime.release_async(*lease_of(request));
}

}  // namespace

extern "C" {

rl_request *rl_client_connect_start(rl_client *client, int64_t wait_ms) {
  return start(client, Request::Op::kConnect, wait_of(wait_ms));
}

rl_request *rl_acquire_start(rl_client *client, const char *name, size_t name_len, int64_t wait_ms,
                             const rl_acquire_options *options) {
  return start(client, Request::Op::kAcquire, [&](Request &request) {
    return fill_acquire(*client, request, name, name_len, wait_ms, options);
  });
}

rl_request *rl_redlock_acquire_start(rl_client *client, const char *name, size_t name_len,
                                     int64_t wait_ms, const rl_acquire_options *options) {
  return rl_acquire_start(client, name, name_len, wait_ms, options);
}

rl_request *rl_rw_acquire_read_start(rl_client *client, const char *name, size_t name_len,
                                     int64_t wait_ms, const rl_acquire_options *options) {
  return start(client, Request::Op::kAcquire, [&](Request &request) {
    return fill_rw(*client, request, runtime::Mode::kRead, name, name_len, wait_ms, options);
  });
}

rl_request *rl_rw_acquire_write_start(rl_client *client, const char *name, size_t name_len,
                                      int64_t wait_ms, const rl_acquire_options *options) {
  return start(client, Request::Op::kAcquire, [&](Request &request) {
    return fill_rw(*client, request, runtime::Mode::kWrite, name, name_len, wait_ms, options);
  });
}

rl_request *rl_rw_upgrade_start(rl_lease *lease, int64_t wait_ms) {
  return start(lease, Request::Op::kUpgrade, wait_of(wait_ms));
}

rl_request *rl_rw_downgrade_start(rl_lease *lease) {
  return start(lease, Request::Op::kDowngrade, no_arguments());
}

rl_request *rl_release_start(rl_lease *lease) {
  return start(lease, Request::Op::kRelease, no_arguments());
}

rl_request *rl_extend_start(rl_lease *lease, int64_t ttl_ms) {
  return start(lease, Request::Op::kExtend, extension_to(ttl_ms));
}

rl_request *rl_lease_attach_start(rl_client *client, const char *name, size_t name_len,
                                  const char *token, size_t token_len, int64_t fence,
                                  const rl_acquire_options *options) {
  return start(client, Request::Op::kAttach, [&](Request &request) {
    return fill_attach(request, text_of(name, name_len), text_of(token, token_len), fence, options);
  });
}

rl_request *rl_lease_detach_start(rl_lease *lease) {
  return start(lease, Request::Op::kDetach, no_arguments());
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
  const NoCancel no_cancel;
  if (request == nullptr || (request->runtime && request->runtime->is_forked())) return;
  request->watched.forget();
  // A finished one, too, may be about to post its tag.
  if (request->is_watched.load()) rl_request_watch(request, nullptr, 0);
  if (request->runtime && !request->request->is_finished()) rl_request_cancel(request);
  if (is_grant(*request->request) && !request->is_taken.exchange(true)) {
    guarded_status(nullptr, [&](rl_error *) { give_back(*request->runtime, *request->request); });
  }
  delete request;
}

}  // extern "C"
