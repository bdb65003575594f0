// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Acquire, leases and requests.
#include "handles.h"

using namespace redlatch;
using namespace redlatch::capi;

namespace {

Outcome check_acquire(const char *name, size_t name_len, int64_t wait_ms) {
  if (auto outcome = client::check_name(text_of(name, name_len)); !outcome.ok()) return outcome;
  return client::check_wait(wait_ms);
}

std::shared_ptr<Request> make_acquire(const char *name, size_t name_len, int64_t wait_ms,
                                      const rl_acquire_options *options) {
  auto request = make_request(Request::Op::kAcquire);
  request->name = text_of(name, name_len);
  request->wait_ms = wait_ms;
  if (options != nullptr) request->options = options->options;
  request->lease = std::make_shared<Lease>();
  return request;
}

// Before the server is asked, so that a grant cannot fail for want of memory.
std::unique_ptr<rl_lease> make_handle(const rl_client *client,
                                      const std::shared_ptr<Request> &request) {
  auto handle = std::make_unique<rl_lease>();
  handle->client = client->client;
  handle->lease = request->lease;
  return handle;
}

rl_lease *run_for_lease(rl_client *client, const std::shared_ptr<Request> &request, rl_error *err) {
  auto handle = make_handle(client, request);
  client->client->run(request);
  return answer(err, *request) == RL_OK ? handle.release() : nullptr;
}

rl_status run_on_lease(rl_lease *lease, const std::shared_ptr<Request> &request, rl_error *err) {
  request->lease = lease->lease;
  lease->client->run(request);
  return answer(err, *request);
}

rl_request *start_on_lease(rl_lease *lease, Request::Op op, int64_t extend_to_ms) {
  return guarded<rl_request *>(nullptr, nullptr, [&]() -> rl_request * {
    auto handle = std::make_unique<rl_request>();
    handle->request = make_request(op);
    Request &request = *handle->request;
    Outcome outcome;
    if (op == Request::Op::kExtend) outcome = client::check_lease(extend_to_ms);
    if (lease == nullptr) {
      outcome = failure(Status::kInvalid, "lease is NULL, which is not allowed here");
    } else if (lease->client->is_forked()) {
      outcome = failure(Status::kForked, rl_status_text(RL_E_FORKED));
    }
    if (!outcome.ok()) {
      request.message = std::move(outcome.message);
      request.status = outcome.status;
    } else {
      request.extend_to = extend_to_ms * kMs;
      request.lease = lease->lease;
      handle->client = lease->client;
      handle->client->start(handle->request);
    }
    return handle.release();
  });
}

}  // namespace

extern "C" {

rl_lease *rl_acquire(rl_client *client, const char *name, size_t name_len, int64_t wait_ms,
                     const rl_acquire_options *options, rl_error *err) {
  if (client == nullptr) return null_argument(err, "client"), nullptr;
  if (client->client->is_forked()) return forked(err), nullptr;
  return guarded<rl_lease *>(err, nullptr, [&]() -> rl_lease * {
    if (auto outcome = check_acquire(name, name_len, wait_ms); !outcome.ok()) {
      return answer(err, outcome), nullptr;
    }
    return run_for_lease(client, make_acquire(name, name_len, wait_ms, options), err);
  });
}

rl_request *rl_acquire_start(rl_client *client, const char *name, size_t name_len, int64_t wait_ms,
                             const rl_acquire_options *options) {
  return guarded<rl_request *>(nullptr, nullptr, [&]() -> rl_request * {
    auto handle = std::make_unique<rl_request>();
    auto outcome = check_acquire(name, name_len, wait_ms);
    if (client == nullptr) {
      outcome = failure(Status::kInvalid, "client is NULL, which is not allowed here");
    } else if (client->client->is_forked()) {
      outcome = failure(Status::kForked, rl_status_text(RL_E_FORKED));
    }
    if (!outcome.ok()) {
      handle->request = make_request(Request::Op::kAcquire);
      handle->request->message = std::move(outcome.message);
      handle->request->status = outcome.status;
      return handle.release();
    }
    handle->request = make_acquire(name, name_len, wait_ms, options);
    handle->client = client->client;
    handle->client->start(handle->request);
    return handle.release();
  });
}

rl_lease *rl_lease_attach(rl_client *client, const char *name, size_t name_len, const char *token,
                          size_t token_len, rl_error *err) {
  if (client == nullptr) return null_argument(err, "client"), nullptr;
  if (client->client->is_forked()) return forked(err), nullptr;
  return guarded<rl_lease *>(err, nullptr, [&]() -> rl_lease * {
    auto outcome = check_acquire(name, name_len, 0);
    if (outcome.ok()) outcome = client::check_token(text_of(token, token_len));
    if (!outcome.ok()) return answer(err, outcome), nullptr;
    const auto request = make_request(Request::Op::kAttach);
    request->name = text_of(name, name_len);
    request->token = text_of(token, token_len);
    request->lease = std::make_shared<Lease>();
    return run_for_lease(client, request, err);
  });
}

rl_status rl_release(rl_lease *lease, rl_error *err) {
  if (lease == nullptr) return null_argument(err, "lease");
  if (lease->client->is_forked()) return forked(err);
  return guarded_status(
      err, [&](rl_error *e) { run_on_lease(lease, make_request(Request::Op::kRelease), e); });
}

rl_status rl_extend(rl_lease *lease, int64_t lease_ms, rl_error *err) {
  if (lease == nullptr) return null_argument(err, "lease");
  if (lease->client->is_forked()) return forked(err);
  return guarded_status(err, [&](rl_error *e) {
    if (auto outcome = client::check_lease(lease_ms); !outcome.ok()) {
      return (void)answer(e, outcome);
    }
    const auto request = make_request(Request::Op::kExtend);
    request->extend_to = lease_ms * kMs;
    run_on_lease(lease, request, e);
  });
}

rl_request *rl_release_start(rl_lease *lease) {
  return start_on_lease(lease, Request::Op::kRelease, 0);
}

rl_request *rl_extend_start(rl_lease *lease, int64_t lease_ms) {
  return start_on_lease(lease, Request::Op::kExtend, lease_ms);
}

void rl_lease_free(rl_lease *lease) {
  if (lease == nullptr || lease->client->is_forked()) return;
  guarded_status(nullptr, [&](rl_error *) { lease->client->abandon(*lease->lease); });
  delete lease;
}

void rl_lease_detach(rl_lease *lease) {
  if (lease == nullptr || lease->client->is_forked()) return;
  guarded_status(nullptr, [&](rl_error *) { lease->client->detach(*lease->lease); });
}

int32_t rl_lease_state(const rl_lease *lease) {
  if (lease == nullptr || lease->client->is_forked()) return 0;
  return lease->lease->state_at(boot_now());
}

int64_t rl_lease_remaining_ms(const rl_lease *lease) {
  const Nanos now = boot_now();
  if (lease == nullptr || lease->client->is_forked()) return 0;
  if (lease->lease->state_at(now) != Lease::kHeld) return 0;
  return std::max<Nanos>(lease->lease->deadline.load() - now, 0) / kMs;
}

int64_t rl_lease_fence(const rl_lease *lease) { return lease == nullptr ? 0 : lease->lease->fence; }

size_t rl_lease_token(const rl_lease *lease, char *buffer, size_t buffer_size) {
  return copy_out(lease == nullptr ? std::string_view() : lease->lease->token, buffer, buffer_size);
}

rl_status rl_lease_check(const rl_lease *lease, rl_error *err) {
  if (lease == nullptr) return null_argument(err, "lease");
  if (lease->client->is_forked()) return forked(err);
  return guarded_status(err, [&](rl_error *e) { answer(e, lease->client->check(*lease->lease)); });
}

rl_status rl_lease_wait_lost(rl_lease *lease, int64_t wait_ms) {
  if (lease == nullptr || wait_ms < -1) return RL_E_INVALID;
  if (lease->client->is_forked()) return RL_E_FORKED;
  return guarded_status(nullptr, [&](rl_error *e) {
    lease->client->wait_ended(*lease->lease, client::limit_of(wait_ms));
    const auto state = lease->lease->state_at(boot_now());
    answer(e, state == Lease::kHeld   ? Status::kPending
              : state == Lease::kLost ? Status::kLost
                                      : Status::kOk);
  });
}

rl_status rl_request_wait(rl_request *request, int64_t wait_ms) {
  if (request == nullptr || wait_ms < -1) return RL_E_INVALID;
  if (request->client && request->client->is_forked()) return RL_E_FORKED;
  if (!request->client || request->request->is_finished()) return rl_request_status(request);
  return guarded_status(nullptr, [&](rl_error *e) {
    answer(e, request->client->wait(*request->request, client::limit_of(wait_ms)));
  });
}

rl_status rl_request_cancel(rl_request *request) {
  if (request == nullptr) return RL_E_INVALID;
  if (request->client && request->client->is_forked()) return RL_E_FORKED;
  if (!request->client) return rl_request_status(request);
  return guarded_status(
      nullptr, [&](rl_error *e) { answer(e, request->client->cancel(*request->request)); });
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
  if (request == nullptr || !request->client || request->client->is_forked()) return nullptr;
  if (request->request->op != Request::Op::kAcquire || rl_request_status(request) != RL_OK) {
    return nullptr;
  }
  return guarded<rl_lease *>(nullptr, nullptr, [&]() -> rl_lease * {
    auto handle = std::make_unique<rl_lease>();
    if (request->is_taken.exchange(true)) return nullptr;
    handle->client = request->client;
    handle->lease = request->request->lease;
    return handle.release();
  });
}

void rl_request_free(rl_request *request) {
  if (request == nullptr || (request->client && request->client->is_forked())) return;
  rl_request_cancel(request);
  const bool is_granted =
      request->request->op == Request::Op::kAcquire && rl_request_status(request) == RL_OK;
  if (is_granted && !request->is_taken.exchange(true)) {
    guarded_status(nullptr,
                   [&](rl_error *) { request->client->abandon(*request->request->lease); });
  }
  delete request;
}

}  // extern "C"
