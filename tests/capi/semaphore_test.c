/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Goal: whatever the callers of a semaphore do at the same time, no more permits are out than the
 * limit allows, and nothing is left behind. Method: threads of two clients play at random; a
 * witness counts the permits inside. Goal: an operator's cap and the numbers of a semaphore. The
 * rules one by one are in tests/conformance.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "calls.h"
#include "harness.h"
#include "redlatch/redlatch.h"
#include "server.h"

enum { THREAD_COUNT = 64, ROUND_COUNT = 40, LIMIT = 5 };

static rl_client* clients[2];
static atomic_int inside;
static atomic_int most;
static atomic_int cancel_count;

static unsigned next_random(unsigned* state) {
  *state = *state * 1103515245u + 12345u;
  return *state >> 16;
}

static void set(rl_acquire_options* options, const char* name, int number) {
  char text[16];
  const int size = snprintf(text, sizeof text, "%d", number);
  CHECK_INT(RL_OK, rl_acquire_options_set(options, name, strlen(name), text, (size_t)size, NULL));
}

static rl_acquire_options* options_of(int permits, int limit) {
  rl_acquire_options* options = rl_acquire_options_new();
  set(options, "permits", permits);
  set(options, "limit", limit);
  return options;
}

static rl_lease* take(size_t client, int permits, int limit, int64_t wait_ms, rl_error* err) {
  rl_acquire_options* options = options_of(permits, limit);
  rl_lease* lease = rl_acquire(clients[client], TEXT("pool"), wait_ms, options, err);
  rl_acquire_options_free(options);
  return lease;
}

static void be_inside(rl_lease* lease, int permits) {
  int seen, out = atomic_fetch_add(&inside, permits) + permits;
  CHECK(out <= LIMIT);
  CHECK_INT(permits, rl_lease_permits(lease));
  for (seen = atomic_load(&most); out > seen;) {
    if (atomic_compare_exchange_weak(&most, &seen, out)) break;
  }
  atomic_fetch_sub(&inside, permits);
}

static rl_lease* start_and_cancel(rl_client* client, const rl_acquire_options* options,
                                  int64_t after_ms) {
  rl_request* request = rl_acquire_start(client, TEXT("pool"), -1, options);
  rl_lease* lease;
  rl_request_wait(request, after_ms);
  atomic_fetch_add(&cancel_count, rl_request_cancel(request) == RL_CANCELLED);
  lease = rl_request_take_lease(request);
  rl_request_free(request);
  return lease;
}

static void* play(void* argument) {
  const size_t number = (size_t)argument;
  rl_client* client = clients[number % 2];
  unsigned state = (unsigned)number + 1;
  int round;
  for (round = 0; round < ROUND_COUNT; ++round) {
    const unsigned random = next_random(&state);
    const int permits = (int)(random % 8 == 0 ? LIMIT : 1 + random % 3);
    rl_acquire_options* options = options_of(permits, LIMIT);
    rl_lease* lease = random % 5 == 0 ? start_and_cancel(client, options, random % 3)
                                      : rl_acquire(client, TEXT("pool"), 60000, options, NULL);
    rl_acquire_options_free(options);
    if (lease == NULL) {
      CHECK(random % 5 == 0);
      continue;
    }
    be_inside(lease, permits);
    CHECK_INT(RL_OK, rl_release(lease, NULL));
    rl_lease_free(lease);
  }
  return NULL;
}

static void never_more_permits_are_out_than_the_limit(void) {
  pthread_t threads[THREAD_COUNT];
  size_t i;
  for (i = 0; i < THREAD_COUNT; ++i) {
    REQUIRE(pthread_create(&threads[i], NULL, play, (void*)i) == 0);
  }
  for (i = 0; i < THREAD_COUNT; ++i) pthread_join(threads[i], NULL);
  CHECK(atomic_load(&most) > 1);
  CHECK(atomic_load(&cancel_count) > 0);
  /* A cancelled request gives its permits back when the server has answered. */
  EVENTUALLY(server_number("EXISTS", "pool", "{pool}:rl1:sq", "{pool}:rl1:sr", NULL) == 0, 20000);
}

static int64_t number_in(rl_info* info, int32_t field) {
  return rl_info_number(info, RL_PART_LOCK, 0, field);
}

static void check_stats(int64_t used, int64_t limit, int64_t cap, int64_t waiting) {
  rl_info* info = rl_semaphore_stats(clients[0], TEXT("pool"), NULL);
  REQUIRE(info != NULL);
  CHECK_INT(1, rl_info_count(info, RL_PART_LOCK));
  CHECK_INT(0, rl_info_count(info, RL_PART_WAITER));
  CHECK_INT(used, number_in(info, RL_FIELD_USED));
  CHECK_INT(limit, number_in(info, RL_FIELD_LIMIT));
  CHECK_INT(cap, number_in(info, RL_FIELD_CAP));
  CHECK_INT(waiting, number_in(info, RL_FIELD_WAITING));
  CHECK_INT(-1, number_in(info, RL_FIELD_CAP_REMAINING_MS));
  rl_info_free(info);
}

static rl_status set_cap(int64_t cap, int64_t for_ms) {
  return rl_semaphore_set_cap(clients[0], TEXT("pool"), cap, for_ms, NULL);
}

static void a_cap_counts_from_the_next_grant_on(void) {
  rl_acquire_options* options = options_of(1, 3);
  rl_lease *one, *two, *three;
  rl_request* waiting;
  rl_error* err = rl_error_new();
  check_stats(0, 0, -1, 0);
  one = take(0, 1, 3, 0, NULL);
  two = take(1, 1, 3, 0, NULL);
  CHECK_INT(RL_OK, set_cap(1, 0));
  CHECK_INT(RL_OK, rl_lease_check(one, NULL));
  check_stats(2, 3, 1, 0);
  waiting = rl_acquire_start(clients[1], TEXT("pool"), -1, options);
  EVENTUALLY(waiting_count(clients[0], "pool") == 1, 20000);
  check_stats(2, 3, 1, 1);
  give_back(one);
  CHECK(take(0, 1, 3, 0, err) == NULL);
  CHECK_INT(RL_BUSY, rl_error_status(err));
  CHECK_HAS("an operator has capped its permits", rl_error_message(err));
  CHECK_INT(RL_PENDING, rl_request_status(waiting));
  CHECK_INT(RL_OK, set_cap(2, 0));
  CHECK_INT(RL_OK, rl_request_wait(waiting, -1));
  three = rl_request_take_lease(waiting);
  rl_request_free(waiting);
  CHECK_INT(RL_OK, set_cap(-1, 0));
  check_stats(2, 3, -1, 0);
  give_back(two);
  give_back(three);
  rl_error_free(err);
  rl_acquire_options_free(options);
}

static void a_cap_for_a_time_ends_then(void) {
  rl_lease* lease;
  rl_info* info;
  CHECK_INT(RL_OK, set_cap(0, 300));
  info = rl_inspect(clients[1], TEXT("pool"), NULL);
  REQUIRE(info != NULL);
  CHECK_INT(0, number_in(info, RL_FIELD_CAP));
  CHECK(number_in(info, RL_FIELD_CAP_REMAINING_MS) <= 300);
  rl_info_free(info);
  lease = take(1, 1, 3, -1, NULL); /* No call wakes it: it polls when the cap has ended. */
  REQUIRE(lease != NULL);
  give_back(lease);
}

static void requests_read_and_cap_as_well(void) {
  rl_request* request = rl_semaphore_set_cap_start(clients[0], TEXT("pool"), 7, 0);
  rl_info* info;
  CHECK_INT(RL_OK, rl_request_wait(request, -1));
  CHECK(rl_request_take_info(request) == NULL);
  rl_request_free(request);
  request = rl_semaphore_stats_start(clients[0], TEXT("pool"));
  CHECK_INT(RL_OK, rl_request_wait(request, -1));
  info = rl_request_take_info(request);
  CHECK_INT(7, number_in(info, RL_FIELD_CAP));
  rl_info_free(info);
  rl_request_free(request);
  CHECK_INT(RL_OK, set_cap(-1, 0));
}

static void check_refused(const char* message, rl_lease* lease, rl_error* err) {
  CHECK(lease == NULL);
  CHECK_INT(RL_E_INVALID, rl_error_status(err));
  CHECK_HAS(message, rl_error_message(err));
}

static void what_is_no_semaphore_is_refused(void) {
  static const struct {
    const char *name, *value, *message;
  } wrong[] = {
      {"owner", "me",
       "option 'owner' must not be set for a semaphore, which gives other permits to a caller that "
       "has "
       "some (got 'me')"},
      {"format", "hash",
       "option 'format' must be auto for a semaphore, which has one format (got hash)"},
      {"mode", "read",
       "option 'mode' must be write for a semaphore, which has no readers (got read)"},
      {"reentrant", "yes",
       "option 'reentrant' must be no for a semaphore, which gives other permits to a caller that "
       "has "
       "some (got yes)"},
      {"permits", "4", "option 'permits' must be 1 to 3, the limit (got 4)"},
      {"permits", "0", "option 'permits' must be 1 to 1000000 (got '0')"},
      {"permits", "-1", "option 'permits' must be 1 to 1000000 (got '-1')"},
      {"limit", "nan", "option 'limit' must be 1 to 1000000 (got 'nan')"},
      {"limit", "1000001", "option 'limit' must be 1 to 1000000 (got '1000001')"},
  };
  rl_error* err = rl_error_new();
  rl_acquire_options* alone = rl_acquire_options_new();
  size_t i;
  for (i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
    rl_acquire_options* options = options_of(1, 3);
    rl_acquire_options_set(options, wrong[i].name, strlen(wrong[i].name), wrong[i].value,
                           strlen(wrong[i].value), NULL);
    check_refused(wrong[i].message, rl_acquire(clients[0], TEXT("pool"), 0, options, err), err);
    rl_acquire_options_free(options);
  }
  set(alone, "permits", 2);
  check_refused("option 'limit' must be set for permits",
                rl_acquire(clients[0], TEXT("pool"), 0, alone, err), err);
  rl_acquire_options_free(alone);

  CHECK_INT(RL_E_INVALID, rl_semaphore_set_cap(clients[0], TEXT("pool"), -2, 0, err));
  CHECK_HAS("cap must be 0 to 1000000, or -1 for none (got -2)", rl_error_message(err));
  CHECK_INT(RL_E_INVALID, rl_semaphore_set_cap(clients[0], TEXT("pool"), 1000001, 0, err));
  CHECK_INT(RL_E_INVALID, rl_semaphore_set_cap(clients[0], TEXT("pool"), 1, 604800001, err));
  CHECK_HAS("for_ms must be 0 to 604800000 (got 604800001)", rl_error_message(err));
  CHECK_INT(RL_E_INVALID, rl_semaphore_set_cap(clients[0], TEXT("pool"), -1, 5, err));
  CHECK_INT(RL_E_INVALID, rl_semaphore_set_cap(clients[0], TEXT(""), 1, 0, err));
  CHECK(rl_semaphore_stats(clients[0], NULL, 0, err) == NULL);
  CHECK_INT(RL_E_INVALID, rl_error_status(err));
  CHECK(rl_semaphore_stats(NULL, TEXT("pool"), err) == NULL);
  CHECK_INT(RL_E_INVALID, rl_error_status(err));
  CHECK_INT(0, rl_lease_permits(NULL));
  rl_error_free(err);
}

static void another_limit_is_logged_once(void) {
  char line[256] = "";
  rl_lease* lease = take(0, 4, 4, 0, NULL);
  REQUIRE(lease != NULL);
  empty_log(clients[1]);
  CHECK(take(1, 1, 3, 0, NULL) == NULL);
  CHECK(take(1, 1, 2, 0, NULL) == NULL);
  CHECK(rl_client_log_next(clients[1], line, sizeof line) > 0);
  CHECK_HAS("warning clients have different limits for lock 'pool': 3 here, 4 elsewhere", line);
  CHECK_INT(0, rl_client_log_next(clients[1], line, sizeof line));
  give_back(lease);
}

static const struct test tests[] = {
    {"never_more_permits_are_out_than_the_limit", never_more_permits_are_out_than_the_limit},
    {"a_cap_counts_from_the_next_grant_on", a_cap_counts_from_the_next_grant_on},
    {"a_cap_for_a_time_ends_then", a_cap_for_a_time_ends_then},
    {"requests_read_and_cap_as_well", requests_read_and_cap_as_well},
    {"what_is_no_semaphore_is_refused", what_is_no_semaphore_is_refused},
    {"another_limit_is_logged_once", another_limit_is_logged_once},
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
