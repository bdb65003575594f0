// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Acquire and leases, in calls that wait.
#include "calls.h"
#include "host/clock.h"

using namespace redlatch;
using namespace redlatch::capi;

extern "C" {

rl_lease *rl_acquire(rl_client *client, const char *name, size_t name_len, int64_t wait_ms,
                     const rl_acquire_options *options, rl_error *err) {
  return run_for_lease(client, Request::Op::kAcquire, err, [&](Request &request) {
    return fill_acquire(*client, request, name, name_len, wait_ms, options);
  });
}

rl_lease *rl_redlock_acquire(rl_client *client, const char *name, size_t name_len, int64_t wait_ms,
                             const rl_acquire_options *options, rl_error *err) {
  return rl_acquire(client, name, name_len, wait_ms, options, err);
}

rl_lease *rl_rw_acquire_read(rl_client *client, const char *name, size_t name_len, int64_t wait_ms,
                             const rl_acquire_options *options, rl_error *err) {
  return run_for_lease(client, Request::Op::kAcquire, err, [&](Request &request) {
    return fill_rw(*client, request, runtime::Mode::kRead, name, name_len, wait_ms, options);
  });
}

rl_lease *rl_rw_acquire_write(rl_client *client, const char *name, size_t name_len, int64_t wait_ms,
                              const rl_acquire_options *options, rl_error *err) {
  return run_for_lease(client, Request::Op::kAcquire, err, [&](Request &request) {
    return fill_rw(*client, request, runtime::Mode::kWrite, name, name_len, wait_ms, options);
  });
}

rl_lease *rl_lease_attach(rl_client *client, const char *name, size_t name_len, const char *token,
                          size_t token_len, int64_t fence, const rl_acquire_options *options,
                          rl_error *err) {
  return run_for_lease(client, Request::Op::kAttach, err, [&](Request &request) {
    return fill_attach(request, text_of(name, name_len), text_of(token, token_len), fence, options);
  });
}

rl_status rl_release(rl_lease *lease, rl_error *err) {
  return run(lease, Request::Op::kRelease, err, no_arguments());
}

rl_status rl_extend(rl_lease *lease, int64_t ttl_ms, rl_error *err) {
  return run(lease, Request::Op::kExtend, err, extension_to(ttl_ms));
}

rl_status rl_rw_upgrade(rl_lease *lease, int64_t wait_ms, rl_error *err) {
  return run(lease, Request::Op::kUpgrade, err, wait_of(wait_ms));
}

rl_status rl_rw_downgrade(rl_lease *lease, rl_error *err) {
  return run(lease, Request::Op::kDowngrade, err, no_arguments());
}

void rl_lease_free(rl_lease *lease) {
  const NoCancel no_cancel;
  if (lease == nullptr || lease->runtime->is_forked()) return;
  lease->watched.forget();
  guarded_status(nullptr, [&](rl_error *) { lease->runtime->release_async(*lease->lease); });
  delete lease;
}

rl_status rl_lease_detach(rl_lease *lease, char *buffer, size_t buffer_size, rl_error *err) {
  if (buffer != nullptr && buffer_size > 0) buffer[0] = '\0';
  const bool is_wanted = buffer != nullptr || buffer_size > 0;
  const auto status = run(lease, Request::Op::kDetach, err, [&](Request &) {
    if (!is_wanted || (buffer != nullptr && buffer_size > runtime::kTokenSize)) return Outcome{};
    return failure(Status::kInvalid, "buffer must be NULL with buffer_size 0, or of " +
                                         std::to_string(RL_TOKEN_BYTES + 1) +
                                         " bytes or more (got "
                                         "buffer_size " +
                                         std::to_string(buffer_size) + ")");
  });
  const bool may_be_marked = status == RL_OK || status == RL_E_OUTCOME_UNKNOWN;
  if (is_wanted && may_be_marked) copy_out(lease->lease->token, buffer, buffer_size);
  return status;
}

int32_t rl_lease_state(const rl_lease *lease) {
  if (lease == nullptr || lease->runtime->is_forked()) return 0;
  return lease->lease->state_at(boot_now());
}

int64_t rl_lease_remaining_ms(const rl_lease *lease) {
  const Nanos now = boot_now();
  if (lease == nullptr || lease->runtime->is_forked()) return 0;
  if (lease->lease->state_at(now) != Lease::kHeld) return 0;
  return std::max<Nanos>(lease->lease->deadline.load() - now, 0) / kMs;
}

int64_t rl_lease_fence(const rl_lease *lease) {
  return lease == nullptr ? 0 : lease->lease->fence.load();
}

int64_t rl_lease_hold_count(const rl_lease *lease) {
  return lease == nullptr ? 0 : lease->lease->hold_count;
}

int64_t rl_lease_permits(const rl_lease *lease) {
  return lease == nullptr ? 0 : lease->lease->permits;
}

int32_t rl_lease_mode(const rl_lease *lease) {
  if (lease == nullptr) return 0;
  return lease->lease->mode.load() == runtime::Mode::kRead ? RL_MODE_READ : RL_MODE_WRITE;
}

size_t rl_lease_name(const rl_lease *lease, char *buffer, size_t buffer_size) {
  return copy_out(lease == nullptr ? std::string_view() : lease->lease->name, buffer, buffer_size);
}

size_t rl_lease_token(const rl_lease *lease, char *buffer, size_t buffer_size) {
  return copy_out(lease == nullptr ? std::string_view() : lease->lease->token, buffer, buffer_size);
}

rl_status rl_lease_check(const rl_lease *lease, rl_error *err) {
  if (lease == nullptr) return null_argument(err, "lease");
  if (lease->runtime->is_forked()) return forked(err);
  return guarded_status(err, [&](rl_error *e) { answer(e, lease->runtime->check(*lease->lease)); });
}

int32_t rl_lease_lost_reason(const rl_lease *lease) {
  if (lease == nullptr || lease->runtime->is_forked()) return RL_LOST_NONE;
  return guarded(nullptr, int32_t{RL_LOST_NONE}, [&] {
    return static_cast<int32_t>(lease->runtime->lost_reason(*lease->lease, nullptr));
  });
}

size_t rl_lease_lost_text(const rl_lease *lease, char *buffer, size_t buffer_size) {
  if (lease == nullptr || lease->runtime->is_forked()) return copy_out({}, buffer, buffer_size);
  return guarded_text(buffer, buffer_size, [&] {
    std::string words;
    lease->runtime->lost_reason(*lease->lease, &words);
    return copy_out(words, buffer, buffer_size);
  });
}

int32_t rl_lease_wait_lost(rl_lease *lease, int64_t wait_ms) {
  if (lease == nullptr || wait_ms < -1) return RL_E_INVALID;
  if (lease->runtime->is_forked()) return RL_E_FORKED;
  int32_t state = 0;
  const rl_status status = guarded_status(nullptr, [&](rl_error *e) {
    state = lease->runtime->wait_ended(*lease->lease, runtime::limit_of(wait_ms));
    answer(e, Status::kOk);
  });
  return status == RL_OK ? state : status;
}

}  // extern "C"
