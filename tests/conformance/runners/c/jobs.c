/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Runs of once and flights in C: the steps that a program makes. Both runners make them by calls
 * that wait.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runner.h"

static void work_for(const struct call* call) {
  const int64_t ms = number_of(call, "for_ms");
  const struct timespec time = {ms / 1000, (ms % 1000) * 1000000};
  nanosleep(&time, NULL);
}

static int succeeds(const struct call* call) {
  size_t length;
  return !is(text_of(call, "run", &length), "fail");
}

static int64_t wait_of(const struct call* call) {
  size_t length;
  const char* text = text_of(call, "wait_ms", &length);
  return length == 0 ? -1 : strtoll(text, NULL, 10);
}

static int32_t tries_of(const struct call* call) {
  const int64_t tries = number_of(call, "tries");
  return tries == 0 ? 3 : (int32_t)tries;
}

static rl_status run_with(struct call* call, rl_lease* lease, rl_error* err) {
  size_t length;
  const char* key = text_of(call, "key", &length);
  rl_status status =
      rl_once_begin(lease, key, length, number_of(call, "every_ms"), tries_of(call), err);
  if (status != RL_OK) {
    rl_release(lease, NULL);
    return status;
  }
  work_for(call);
  status = succeeds(call) ? rl_once_done(lease, key, length, err) : rl_release(lease, err);
  if (status == RL_OK) add(call, succeeds(call) ? " ran=ok" : " ran=failed");
  return status;
}

rl_status run_once(struct call* call, const struct lock* lock, rl_error* err) {
  rl_status status;
  rl_lease* lease =
      rl_acquire(client, lock->name, lock->name_length, wait_of(call), lock->options, err);
  if (lease == NULL) return rl_error_status(err) == RL_BUSY ? RL_SKIPPED : rl_error_status(err);
  status = run_with(call, lease, err);
  rl_lease_free(lease);
  return status;
}

static rl_status compute(struct call* call, rl_lease* lease, rl_error* err) {
  size_t length;
  const char* value = text_of(call, "value", &length);
  rl_status status;
  work_for(call);
  if (!succeeds(call)) {
    status = rl_flight_fail(lease, "Refused", strlen("Refused"), value, length, err);
    if (status == RL_OK) add(call, " failed=1 text="), add_text(call, value, length);
    return status;
  }
  status = rl_flight_store(lease, value, length, number_of(call, "ttl_ms"), err);
  if (status == RL_OK) add(call, " value="), add_text(call, value, length);
  if (status == RL_OK) add(call, " computed=1");
  return status;
}

static rl_status show_value(struct call* call, const rl_request* request) {
  char value[TEXT_SIZE], type[RL_MAX_FAILURE_TYPE_BYTES + 1];
  const size_t length = rl_flight_value(request, value, sizeof value);
  if (length >= sizeof value) return NO_SUCH_OPERATION;
  add(call, rl_flight_has_failed(request) ? " failed=1 text=" : " value=");
  add_text(call, value, length);
  if (!rl_flight_has_failed(request)) {
    add(call, " computed=0");
    return RL_OK;
  }
  rl_flight_failure_type(request, type, sizeof type);
  add(call, " type=%s", type);
  return RL_OK;
}

rl_status fly(struct call* call, const struct lock* lock, rl_error* err) {
  rl_request* request =
      rl_flight_start(client, lock->name, lock->name_length, wait_of(call), lock->options);
  rl_status status = rl_request_wait(request, -1);
  rl_lease* lease = rl_request_take_lease(request);
  if (lease != NULL) {
    status = compute(call, lease, err);
    rl_lease_free(lease);
  } else if (status == RL_OK) {
    status = show_value(call, request);
  }
  rl_request_free(request);
  return status;
}
