/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Goal: of the callers that start a job, or fly for a value, at the same time, one runs or
 * computes; bad arguments are refused before anything is sent, and with the words that help.
 * Method: threads of two clients. The rules one by one are in tests/conformance.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "calls.h"
#include "harness.h"
#include "redlatch/redlatch.h"
#include "server.h"

enum { THREAD_COUNT = 64, LONG_MS = 600000 };

static rl_client* clients[2];
static atomic_int run_count, other_count;
static pthread_barrier_t barrier;

static void on_all_threads(void* (*play)(void*)) {
  pthread_t threads[THREAD_COUNT];
  size_t i;
  atomic_store(&run_count, 0);
  atomic_store(&other_count, 0);
  pthread_barrier_init(&barrier, NULL, THREAD_COUNT);
  for (i = 0; i < THREAD_COUNT; ++i) {
    REQUIRE(pthread_create(&threads[i], NULL, play, clients[i % 2]) == 0);
  }
  for (i = 0; i < THREAD_COUNT; ++i) pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&barrier);
  CHECK_INT(1, atomic_load(&run_count));
  CHECK_INT(THREAD_COUNT - 1, atomic_load(&other_count));
}

static void* start_job(void* client) {
  rl_lease* lease;
  rl_status status;
  pthread_barrier_wait(&barrier);
  lease = rl_acquire((rl_client*)client, TEXT("job"), -1, NULL, NULL);
  status = rl_once_begin(lease, TEXT(""), LONG_MS, 3, NULL);
  if (status == RL_OK) {
    atomic_fetch_add(&run_count, 1);
    CHECK_INT(RL_OK, rl_once_done(lease, TEXT(""), NULL));
  } else {
    CHECK_INT(RL_SKIPPED, status);
    atomic_fetch_add(&other_count, 1);
    CHECK_INT(RL_OK, rl_release(lease, NULL));
  }
  rl_lease_free(lease);
  return NULL;
}

static void one_of_64_callers_runs(void) { on_all_threads(start_job); }

static void* fly(void* client) {
  char value[16];
  rl_lease* lease;
  rl_request* request;
  pthread_barrier_wait(&barrier);
  request = rl_flight_start((rl_client*)client, TEXT("value"), -1, NULL);
  CHECK_INT(RL_OK, rl_request_wait(request, -1));
  lease = rl_request_take_lease(request);
  if (lease != NULL) {
    CHECK(rl_flight_value(request, value, sizeof value) == RL_NO_TEXT);
    atomic_fetch_add(&run_count, 1);
    sleep_ms(20);
    CHECK_INT(RL_OK, rl_flight_store(lease, TEXT("a\0b"), LONG_MS, NULL));
    rl_lease_free(lease);
  } else {
    CHECK_INT(3, rl_flight_value(request, value, sizeof value));
    CHECK(memcmp(value, "a\0b", 4) == 0);
    CHECK_INT(0, rl_flight_has_failed(request));
    CHECK_INT(0, rl_flight_failure_type(request, value, sizeof value));
    atomic_fetch_add(&other_count, 1);
  }
  rl_request_free(request);
  return NULL;
}

static void one_of_64_callers_computes(void) {
  on_all_threads(fly);
  CHECK_INT(0, server_number("EXISTS", "value", "{value}:rl1:q", NULL));
}

/* It has no caller any more that takes the lease. */
static void a_flight_that_is_freed_gives_its_lease_back(void) {
  rl_request* request = rl_flight_start(clients[0], TEXT("freed"), -1, NULL);
  CHECK_INT(RL_OK, rl_request_wait(request, -1));
  rl_request_free(request);
  EVENTUALLY(is_free("freed"), 20000);
  request = rl_flight_start(clients[1], TEXT("freed"), -1, NULL);
  CHECK_INT(RL_OK, rl_request_wait(request, -1));
  rl_request_free(request);
}

static void a_cancelled_flight_disturbs_nobody(void) {
  rl_request *computing = rl_flight_start(clients[0], TEXT("cancel"), -1, NULL), *first, *second;
  rl_lease* lease;
  CHECK_INT(RL_OK, rl_request_wait(computing, -1));
  lease = rl_request_take_lease(computing);
  rl_request_free(computing);
  first = rl_flight_start(clients[1], TEXT("cancel"), -1, NULL);
  EVENTUALLY(waiting_count(clients[0], "cancel") == 1, 20000);
  second = rl_flight_start(clients[1], TEXT("cancel"), -1, NULL);
  CHECK_INT(RL_PENDING, rl_request_wait(second, 50));
  CHECK_INT(RL_CANCELLED, rl_request_cancel(first));
  rl_request_free(first);
  give_back(lease); /* Without a value: the waiting caller computes. */
  CHECK_INT(RL_OK, rl_request_wait(second, -1));
  lease = rl_request_take_lease(second);
  REQUIRE(lease != NULL);
  CHECK_INT(RL_OK, rl_flight_fail(lease, TEXT("Refused"), TEXT("no"), NULL));
  rl_lease_free(lease);
  rl_request_free(second);
  CHECK(is_free("cancel"));
}

/* The last waiting caller leaves the queue with it. */
static void a_cancelled_flight_leaves_no_waiter(void) {
  rl_lease* lease = rl_acquire(clients[0], TEXT("left"), 0, NULL, NULL);
  rl_request* request = rl_flight_start(clients[1], TEXT("left"), -1, NULL);
  EVENTUALLY(waiting_count(clients[0], "left") == 1, 20000);
  rl_request_free(request);
  EVENTUALLY(waiting_count(clients[0], "left") == 0, 20000);
  give_back(lease);
}

static void check_refused(rl_status status, const char* message, const rl_error* err) {
  CHECK_INT(RL_E_INVALID, status);
  CHECK_HAS(message, rl_error_message(err));
}

static void bad_arguments_are_refused(void) {
  rl_error* err = rl_error_new();
  char* big = (char*)calloc(1, RL_MAX_VALUE_BYTES + 1);
  rl_lease* lease = rl_acquire(clients[0], TEXT("bad"), 0, NULL, NULL);
  rl_request* request;
  check_refused(rl_once_begin(lease, big, RL_MAX_PERIOD_BYTES + 1, 1000, 1, err),
                "key must be at most 256 bytes (got 257 bytes)", err);
  check_refused(rl_once_begin(lease, NULL, 0, 99, 1, err),
                "every must be 100 ms to 366 days (got 99 ms)", err);
  check_refused(rl_once_begin(lease, NULL, 0, INT64_MAX, 1, err),
                "every must be 100 ms to 366 days (got ", err);
  check_refused(rl_once_begin(lease, NULL, 0, 1000, 0, err), "tries must be 1 to 1000 (got 0)",
                err);
  check_refused(rl_flight_store(lease, big, RL_MAX_VALUE_BYTES + 1, 1000, err),
                "value must be at most 65536 bytes (got 65537 bytes)", err);
  check_refused(rl_flight_store(lease, big, 1, 1, err), "ttl", err);
  CHECK_INT(RL_LEASE_HELD, rl_lease_state(lease));
  CHECK_INT(RL_OK, rl_flight_store(lease, big, RL_MAX_VALUE_BYTES, 1000, err));
  CHECK_INT(RL_E_NOT_HELD, rl_once_begin(lease, NULL, 0, 1000, 1, err));
  rl_lease_free(lease);
  request = rl_flight_start(clients[0], TEXT("bad"), 0, NULL);
  CHECK_INT(RL_E_INVALID, rl_request_status(request));
  CHECK_HAS("wait_ms must be -1, or above 0, for a flight (got 0)", rl_request_message(request));
  rl_request_free(request);
  free(big);
  rl_error_free(err);
}

/* Only a mutex in the format string stands for a run or a flight. */
static void other_locks_are_refused(void) {
  rl_error* err = rl_error_new();
  rl_names* names = rl_names_new();
  rl_lease* lease = rl_rw_acquire_read(clients[0], TEXT("other"), 0, NULL, NULL);
  check_refused(rl_once_begin(lease, NULL, 0, 1000, 1, err),
                "must be a mutex in the format string for a run or a flight", err);
  check_refused(rl_once_done(lease, NULL, 0, err), "must be a mutex", err);
  check_refused(rl_flight_store(lease, NULL, 0, 1000, err), "must be a mutex", err);
  CHECK_INT(RL_LEASE_HELD, rl_lease_state(lease));
  give_back(lease);
  rl_names_add(names, TEXT("other"), RL_MODE_WRITE, NULL);
  rl_names_add(names, TEXT("another"), RL_MODE_WRITE, NULL);
  lease = rl_acquire_all(clients[0], names, 0, NULL, NULL);
  check_refused(rl_once_begin(lease, NULL, 0, 1000, 1, err), "a lease of several names cannot",
                err);
  check_refused(rl_once_done(lease, NULL, 0, err), "a lease of several names cannot", err);
  give_back(lease);
  rl_names_free(names);
  rl_error_free(err);
}

static void requests_do_the_same(void) {
  rl_lease* lease = rl_acquire(clients[0], TEXT("requests"), 0, NULL, NULL);
  rl_request* request = rl_once_begin_start(lease, TEXT("k"), LONG_MS, 1);
  rl_info* info;
  CHECK_INT(RL_OK, rl_request_wait(request, -1));
  rl_request_free(request);
  request = rl_once_done_start(lease, TEXT("k"));
  CHECK_INT(RL_OK, rl_request_wait(request, -1));
  rl_request_free(request);
  rl_lease_free(lease);
  info = rl_inspect(clients[1], TEXT("requests"), NULL);
  CHECK_INT(1, rl_info_count(info, RL_PART_MARK));
  CHECK_INT(1, rl_info_number(info, RL_PART_MARK, 0, RL_FIELD_DONE));
  CHECK(rl_info_number(info, RL_PART_MARK, 0, RL_FIELD_REMAINING_MS) <= LONG_MS);
  rl_info_free(info);
  request = rl_once_forget_start(clients[1], TEXT("requests"));
  CHECK_INT(RL_OK, rl_request_wait(request, -1));
  rl_request_free(request);
  CHECK_INT(0, server_number("EXISTS", "{requests}:rl1:o", NULL));
}

/* As tests/capi/arguments_test.c for the other functions. */
static void check_nonsense(rl_status status, const rl_error* err) {
  CHECK_INT(RL_E_INVALID, status);
  CHECK_INT(RL_E_INVALID, rl_error_status(err));
  CHECK(rl_error_message(err)[0] != '\0');
}

static void check_finished(rl_request* request) {
  REQUIRE(request != NULL);
  CHECK_INT(RL_E_INVALID, rl_request_status(request));
  CHECK(rl_request_message(request)[0] != '\0');
  CHECK(rl_request_take_lease(request) == NULL);
  rl_request_free(request);
}

static void nonsense_is_refused(void) {
  rl_client* client = clients[0];
  rl_error* err = rl_error_new();
  static rl_request* const no_request = NULL;
  char buffer[4] = "xxx";
  check_nonsense(rl_once_begin(NULL, TEXT("k"), 1000, 1, err), err);
  check_nonsense(rl_once_done(NULL, TEXT("k"), err), err);
  check_nonsense(rl_once_forget(NULL, TEXT("x"), err), err);
  check_nonsense(rl_once_forget(client, NULL, 7, err), err);
  check_nonsense(rl_flight_store(NULL, TEXT("v"), 1000, err), err);
  check_nonsense(rl_flight_fail(NULL, TEXT("t"), TEXT("x"), err), err);
  check_finished(rl_once_begin_start(NULL, TEXT("k"), 1000, 1));
  check_finished(rl_once_done_start(NULL, TEXT("k")));
  check_finished(rl_once_forget_start(NULL, TEXT("x")));
  check_finished(rl_once_forget_start(client, "x", SIZE_MAX));
  check_finished(rl_flight_start(NULL, TEXT("x"), -1, NULL));
  check_finished(rl_flight_start(client, NULL, 7, -1, NULL));
  check_finished(rl_flight_start(client, TEXT("x"), -2, NULL));
  check_finished(rl_flight_store_start(NULL, TEXT("v"), 1000));
  check_finished(rl_flight_fail_start(NULL, TEXT("t"), TEXT("x")));
  CHECK(rl_flight_value(no_request, buffer, sizeof buffer) == RL_NO_TEXT);
  CHECK_INT(0, buffer[0]);
  CHECK_INT(0, rl_flight_has_failed(no_request));
  CHECK_INT(0, rl_flight_failure_type(no_request, NULL, 9));
  rl_error_free(err);
}

static const struct test tests[] = {
    {"one_of_64_callers_runs", one_of_64_callers_runs},
    {"one_of_64_callers_computes", one_of_64_callers_computes},
    {"a_flight_that_is_freed_gives_its_lease_back", a_flight_that_is_freed_gives_its_lease_back},
    {"a_cancelled_flight_disturbs_nobody", a_cancelled_flight_disturbs_nobody},
    {"a_cancelled_flight_leaves_no_waiter", a_cancelled_flight_leaves_no_waiter},
    {"bad_arguments_are_refused", bad_arguments_are_refused},
    {"other_locks_are_refused", other_locks_are_refused},
    {"requests_do_the_same", requests_do_the_same},
    {"nonsense_is_refused", nonsense_is_refused},
};

int main(int argc, char** argv) {
  int failed;
  clients[0] = server_client();
  clients[1] = server_client();
  failed = run_tests(tests, TEST_COUNT(tests), argc, argv);
  rl_client_close(clients[0]);
  rl_client_close(clients[1]);
  return failed;
}
