/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Goal: several names are acquired together or not at all, whatever the callers do at the same
 * time, and nothing is left behind. Method: threads of two clients play at random, each with its
 * own order of names; a witness counts who is inside of each name. The rules one by one are in
 * tests/conformance.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "calls.h"
#include "harness.h"
#include "redlatch/redlatch.h"
#include "server.h"

enum { THREAD_COUNT = 64, ROUND_COUNT = 20, NAME_COUNT = 5 };

static rl_client* clients[2];
static atomic_int readers[NAME_COUNT];
static atomic_int writers[NAME_COUNT];
static atomic_int cancel_count;

static unsigned next_random(unsigned* state) {
  *state = *state * 1103515245u + 12345u;
  return *state >> 16;
}

static void add(rl_names* names, int number, int32_t mode) {
  char name[16];
  const int size = snprintf(name, sizeof name, "n%d", number);
  CHECK_INT(RL_OK, rl_names_add(names, name, (size_t)size, mode, NULL));
}

static rl_names* two_names(void) {
  rl_names* names = rl_names_new();
  add(names, 2, RL_MODE_WRITE);
  add(names, 1, RL_MODE_WRITE);
  return names;
}

static rl_lease* take(size_t client, int64_t wait_ms, const rl_acquire_options* options,
                      rl_error* err) {
  rl_names* names = two_names();
  rl_lease* lease = rl_acquire_all(clients[client], names, wait_ms, options, err);
  rl_names_free(names);
  return lease;
}

static rl_acquire_options* with(const char* name, const char* value) {
  rl_acquire_options* options = rl_acquire_options_new();
  rl_acquire_options_set(options, name, strlen(name), value, strlen(value), NULL);
  return options;
}

static int are_free(void) { return is_free("n1") && is_free("n2"); }

/* ---- all or none ----------------------------------------------------------------------------- */

static void enter(const int* order, const int32_t* modes, int count, int by) {
  int i;
  for (i = 0; i < count; ++i) {
    const int name = order[i];
    const int reads = modes[i] == RL_MODE_READ;
    atomic_fetch_add(reads ? &readers[name] : &writers[name], by);
    if (by < 0) continue;
    CHECK(atomic_load(&writers[name]) == (reads ? 0 : 1));
    CHECK(reads || atomic_load(&readers[name]) == 0);
  }
}

static rl_lease* start_and_cancel(rl_client* client, const rl_names* names, int64_t after_ms) {
  rl_request* request = rl_acquire_all_start(client, names, -1, NULL);
  rl_lease* lease;
  rl_request_wait(request, after_ms);
  atomic_fetch_add(&cancel_count, rl_request_cancel(request) == RL_CANCELLED);
  lease = rl_request_take_lease(request);
  rl_request_free(request);
  return lease;
}

static void* play(void* argument) {
  const size_t number = (size_t)argument;
  unsigned state = (unsigned)number + 1;
  int round;
  for (round = 0; round < ROUND_COUNT; ++round) {
    const unsigned random = next_random(&state);
    int order[NAME_COUNT] = {0, 1, 2, 3, 4}, i;
    int32_t modes[NAME_COUNT];
    const int count = 1 + (int)(random % 3);
    rl_names* names = rl_names_new();
    rl_lease* lease;
    for (i = 0; i < count; ++i) {
      const int other = i + (int)(next_random(&state) % (unsigned)(NAME_COUNT - i));
      const int name = order[other];
      order[other] = order[i];
      order[i] = name;
      modes[i] = next_random(&state) % 3 == 0 ? RL_MODE_READ : RL_MODE_WRITE;
      add(names, name, modes[i]);
    }
    lease = random % 5 == 0 ? start_and_cancel(clients[number % 2], names, random % 3)
                            : rl_acquire_all(clients[number % 2], names, 120000, NULL, NULL);
    rl_names_free(names);
    if (lease == NULL) {
      CHECK(random % 5 == 0);
      continue;
    }
    CHECK_INT(count, rl_lease_part_count(lease));
    enter(order, modes, count, 1);
    CHECK_INT(RL_OK, rl_lease_check(lease, NULL));
    enter(order, modes, count, -1);
    CHECK_INT(RL_OK, rl_release(lease, NULL));
    rl_lease_free(lease);
  }
  return NULL;
}

static void no_order_of_names_deadlocks(void) {
  pthread_t threads[THREAD_COUNT];
  size_t i;
  for (i = 0; i < THREAD_COUNT; ++i) {
    REQUIRE(pthread_create(&threads[i], NULL, play, (void*)i) == 0);
  }
  for (i = 0; i < THREAD_COUNT; ++i) pthread_join(threads[i], NULL);
  CHECK(atomic_load(&cancel_count) > 0);
  for (i = 0; i < NAME_COUNT; ++i) {
    char name[16];
    snprintf(name, sizeof name, "n%d", (int)i);
    EVENTUALLY(is_free(name), 20000);
  }
}

static void one_try_takes_all_or_none(void) {
  rl_error* err = rl_error_new();
  rl_lease* other = rl_acquire(clients[1], TEXT("n2"), 0, NULL, NULL);
  CHECK(take(0, 0, NULL, err) == NULL);
  CHECK_INT(RL_BUSY, rl_error_status(err));
  CHECK_HAS("lock 'n2'", rl_error_message(err));
  EVENTUALLY(is_free("n1"), 20000);
  CHECK(take(0, 50, NULL, err) == NULL);
  CHECK_INT(RL_TIMEOUT, rl_error_status(err));
  CHECK_HAS("2 names were not granted within 0.05 s: lock 'n2'", rl_error_message(err));
  EVENTUALLY(is_free("n1"), 20000);
  give_back(other);
  EVENTUALLY(are_free(), 20000);
  rl_error_free(err);
}

static void each_name_has_a_fence(void) {
  rl_lease* lease = take(0, 0, NULL, NULL);
  char text[64];
  REQUIRE(lease != NULL);
  CHECK_INT(2, rl_lease_part_count(lease));
  CHECK(rl_lease_part_fence(lease, 0) > 0 && rl_lease_part_fence(lease, 1) > 0);
  CHECK_INT(rl_lease_fence(lease), rl_lease_part_fence(lease, 0));
  CHECK_INT(server_number("GET", "{n2}:rl1:f", NULL), rl_lease_part_fence(lease, 0));
  CHECK_INT(server_number("GET", "{n1}:rl1:f", NULL), rl_lease_part_fence(lease, 1));
  CHECK_INT(0, rl_lease_part_fence(lease, 2) + rl_lease_part_fence(lease, -1));
  CHECK_INT(2, rl_lease_name(lease, text, sizeof text));
  CHECK_HAS("n2", text);
  CHECK_INT(RL_MODE_WRITE, rl_lease_mode(lease));
  give_back(lease);
  EVENTUALLY(are_free(), 20000);
}

static void a_waiter_gets_all_that_is_released(void) {
  rl_lease* held = rl_acquire(clients[1], TEXT("n1"), 0, NULL, NULL);
  rl_names* names = two_names();
  rl_request* request = rl_acquire_all_start(clients[0], names, -1, NULL);
  rl_lease* lease;
  rl_names_free(names);
  EVENTUALLY(waiting_count(clients[1], "n1") == 1, 20000);
  EVENTUALLY(is_free("n2"), 20000); /* Nothing behind what it waits for. */
  give_back(held);
  CHECK_INT(RL_OK, rl_request_wait(request, -1));
  lease = rl_request_take_lease(request);
  rl_request_free(request);
  CHECK_INT(RL_OK, rl_lease_check(lease, NULL));
  rl_lease_free(lease);
  EVENTUALLY(are_free(), 20000);
}

static void one_name_is_a_plain_lock(void) {
  rl_names* names = rl_names_new();
  rl_lease* lease;
  add(names, 1, RL_MODE_READ);
  lease = rl_acquire_all(clients[0], names, 0, NULL, NULL);
  rl_names_free(names);
  REQUIRE(lease != NULL);
  CHECK_INT(1, rl_lease_part_count(lease));
  CHECK_INT(rl_lease_fence(lease), rl_lease_part_fence(lease, 0));
  CHECK_INT(RL_MODE_READ, rl_lease_mode(lease));
  CHECK_INT(RL_OK, rl_rw_upgrade(lease, 0, NULL));
  give_back(lease);
}

/* ---- a lease --------------------------------------------------------------------------------- */

static void a_lost_part_ends_it(void) {
  rl_error* err = rl_error_new();
  rl_lease* lease = take(0, 0, NULL, NULL);
  CHECK_INT(RL_OK, rl_force_release_any(clients[1], TEXT("n1"), NULL));
  CHECK_INT(RL_E_LOST, rl_extend(lease, 60000, NULL));
  CHECK_INT(RL_LEASE_LOST, rl_lease_wait_lost(lease, -1));
  CHECK_INT(RL_E_LOST, rl_lease_check(lease, err));
  CHECK_HAS("lock 'n2' was lost: its part 'n1' was lost: ", rl_error_message(err));
  CHECK_INT(RL_E_LOST, rl_release(lease, err));
  EVENTUALLY(are_free(), 20000); /* The other part, too. */
  rl_lease_free(lease);
  rl_error_free(err);
}

static void a_release_says_which_part_was_lost(void) {
  rl_error* err = rl_error_new();
  rl_acquire_options* options = with("renew", "no");
  rl_lease* lease = take(0, 0, options, NULL);
  CHECK_INT(RL_OK, rl_force_release_any(clients[1], TEXT("n1"), NULL));
  CHECK_INT(RL_E_LOST, rl_release(lease, err));
  CHECK_HAS("its part 'n1' was lost: ", rl_error_message(err));
  CHECK(rl_lease_lost_reason(lease) != RL_LOST_NONE);
  EVENTUALLY(are_free(), 20000);
  rl_lease_free(lease);
  rl_acquire_options_free(options);
  rl_error_free(err);
}

static void it_is_extended_as_a_whole(void) {
  rl_acquire_options* options = with("ttl", "2s");
  rl_lease* lease = take(0, 0, options, NULL);
  CHECK_INT(RL_OK, rl_extend(lease, 600000, NULL));
  CHECK(rl_lease_remaining_ms(lease) > 300000);
  CHECK(server_number("PTTL", "n1", NULL) > 300000);
  CHECK(server_number("PTTL", "n2", NULL) > 300000);
  give_back(lease);
  rl_acquire_options_free(options);
}

static void max_hold_counts_for_all(void) {
  rl_acquire_options* options = with("max_hold", "100ms");
  rl_lease* lease = take(0, 0, options, NULL);
  CHECK_INT(RL_LEASE_LOST, rl_lease_wait_lost(lease, -1));
  CHECK_INT(RL_LOST_MAX_HOLD, rl_lease_lost_reason(lease));
  EVENTUALLY(are_free(), 20000);
  rl_lease_free(lease);
  rl_acquire_options_free(options);
}

static void what_it_cannot_do_is_refused(void) {
  rl_error* err = rl_error_new();
  rl_lease* lease = take(0, 0, NULL, NULL);
  char token[64];
  CHECK_INT(RL_E_INVALID, rl_lease_detach(lease, token, sizeof token, err));
  CHECK_HAS("a lease of several names cannot be detached", rl_error_message(err));
  CHECK_INT(RL_E_INVALID, rl_rw_upgrade(lease, 0, err));
  CHECK_HAS("upgraded", rl_error_message(err));
  CHECK_INT(RL_E_INVALID, rl_rw_downgrade(lease, err));
  CHECK_INT(RL_OK, rl_lease_check(lease, NULL));
  CHECK_INT(RL_OK, rl_release(lease, NULL));
  CHECK_INT(RL_E_NOT_HELD, rl_release(lease, NULL));
  CHECK_INT(RL_E_INVALID, rl_rw_downgrade(lease, NULL));
  rl_lease_free(lease);
  rl_error_free(err);
}

static void a_shutdown_releases_all(void) {
  rl_client* client = server_client();
  rl_names* names = two_names();
  rl_lease* lease = rl_acquire_all(client, names, 0, NULL, NULL);
  rl_request* request = rl_acquire_all_start(client, names, -1, NULL);
  rl_names_free(names);
  rl_client_shutdown(client);
  CHECK_INT(RL_E_CLOSED, rl_request_wait(request, -1));
  CHECK_INT(RL_LEASE_RELEASED, rl_lease_state(lease));
  CHECK(are_free());
  rl_request_free(request);
  rl_lease_free(lease);
  rl_client_close(client);
}

/* ---- arguments ------------------------------------------------------------------------------- */

static void check_refused(const char* message, const rl_names* names,
                          const rl_acquire_options* options) {
  rl_error* err = rl_error_new();
  CHECK(rl_acquire_all(clients[0], names, 0, options, err) == NULL);
  CHECK_INT(RL_E_INVALID, rl_error_status(err));
  CHECK_HAS(message, rl_error_message(err));
  rl_error_free(err);
}

static void wrong_names_are_refused(void) {
  rl_error* err = rl_error_new();
  rl_names* names = rl_names_new();
  int i;
  check_refused("names must be 1 to 64 (got 0)", names, NULL);
  check_refused("names must not be NULL", NULL, NULL);
  CHECK_INT(RL_E_INVALID, rl_names_add(NULL, TEXT("x"), RL_MODE_WRITE, err));
  CHECK_INT(RL_E_INVALID, rl_names_add(names, NULL, 1, RL_MODE_WRITE, err));
  CHECK_INT(RL_E_INVALID, rl_names_add(names, TEXT(""), RL_MODE_WRITE, err));
  CHECK_INT(RL_E_INVALID, rl_names_add(names, TEXT("x"), 0, err));
  CHECK_HAS("mode must be 1 or 2 (got 0)", rl_error_message(err));
  CHECK_INT(RL_E_INVALID, rl_names_add(names, TEXT("x"), RL_MODE_UPGRADE, err));
  for (i = 0; i < 64; ++i) add(names, i, RL_MODE_WRITE);
  CHECK_INT(RL_E_INVALID, rl_names_add(names, TEXT("n7"), RL_MODE_READ, err));
  CHECK_HAS("names must differ (got 'n7' twice)", rl_error_message(err));
  CHECK_INT(RL_E_INVALID, rl_names_add(names, TEXT("x"), RL_MODE_WRITE, err));
  CHECK_HAS("names must be 1 to 64 (got more)", rl_error_message(err));
  give_back(rl_acquire_all(clients[0], names, 0, NULL, NULL));
  rl_names_free(names);
  rl_names_free(NULL);
  CHECK_INT(0, rl_lease_part_count(NULL) + rl_lease_part_fence(NULL, 0));
  rl_error_free(err);
}

static void a_path_is_read_above_and_written_below(void) {
  rl_error* err = rl_error_new();
  rl_names* one = rl_names_new();
  rl_names* other = rl_names_new();
  rl_names* whole = rl_names_new();
  rl_names* wrong = rl_names_new();
  char deep[2 * 65];
  rl_lease *first, *second;
  int i;
  CHECK_INT(RL_OK, rl_names_add_path(one, TEXT("a/b/c"), NULL));
  CHECK_INT(RL_OK, rl_names_add_path(other, TEXT("a/b/d"), NULL));
  CHECK_INT(RL_OK, rl_names_add_path(whole, TEXT("a"), NULL));
  first = rl_acquire_all(clients[0], one, 0, NULL, NULL);
  second = rl_acquire_all(clients[1], other, 0, NULL, NULL);
  REQUIRE(first != NULL && second != NULL);
  CHECK_INT(3, rl_lease_part_count(first));
  CHECK(rl_acquire_all(clients[1], whole, 0, NULL, err) == NULL);
  CHECK_INT(RL_BUSY, rl_error_status(err));
  give_back(first);
  give_back(second);
  give_back(rl_acquire_all(clients[1], whole, 30000, NULL, NULL));
  CHECK_INT(RL_E_INVALID, rl_names_add_path(wrong, TEXT(""), err));
  CHECK_INT(RL_E_INVALID, rl_names_add_path(wrong, TEXT("/a"), err));
  CHECK_INT(RL_E_INVALID, rl_names_add_path(wrong, TEXT("a/"), err));
  CHECK_INT(RL_E_INVALID, rl_names_add_path(wrong, TEXT("a//b"), err));
  CHECK_HAS("path must have no empty component (got 'a//b')", rl_error_message(err));
  CHECK_INT(RL_E_INVALID, rl_names_add_path(wrong, NULL, 1, err));
  CHECK_INT(RL_E_INVALID, rl_names_add_path(NULL, TEXT("a"), err));
  for (i = 0; i < 65; ++i) memcpy(deep + 2 * i, "x/", 2);
  CHECK_INT(RL_E_INVALID, rl_names_add_path(wrong, deep, 2 * 65 - 1, err));
  CHECK_INT(RL_OK, rl_names_add_path(wrong, deep, 2 * 64 - 1, err)); /* Nothing was added. */
  rl_names_free(one);
  rl_names_free(other);
  rl_names_free(whole);
  rl_names_free(wrong);
  rl_error_free(err);
}

static void wrong_options_are_refused(void) {
  static const struct {
    const char *name, *value, *message;
  } wrong[] = {
      {"owner", "me", "option 'owner' must not be set for several names (got 'me')"},
      {"reentrant", "yes", "option 'reentrant' must be no for several names (got 'yes')"},
      {"mode", "read", "option 'mode' must not be set for several names"},
      {"limit", "3", "option 'limit' must not be set for several names"},
      {"permits", "2", "option 'permits' must not be set for several names"},
  };
  rl_names* names = two_names();
  size_t i;
  for (i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
    rl_acquire_options* options = with(wrong[i].name, wrong[i].value);
    check_refused(wrong[i].message, names, options);
    rl_acquire_options_free(options);
  }
  rl_names_free(names);
}

static const struct test tests[] = {
    {"no_order_of_names_deadlocks", no_order_of_names_deadlocks},
    {"one_try_takes_all_or_none", one_try_takes_all_or_none},
    {"each_name_has_a_fence", each_name_has_a_fence},
    {"a_waiter_gets_all_that_is_released", a_waiter_gets_all_that_is_released},
    {"one_name_is_a_plain_lock", one_name_is_a_plain_lock},
    {"a_lost_part_ends_it", a_lost_part_ends_it},
    {"a_release_says_which_part_was_lost", a_release_says_which_part_was_lost},
    {"it_is_extended_as_a_whole", it_is_extended_as_a_whole},
    {"max_hold_counts_for_all", max_hold_counts_for_all},
    {"what_it_cannot_do_is_refused", what_it_cannot_do_is_refused},
    {"a_shutdown_releases_all", a_shutdown_releases_all},
    {"wrong_names_are_refused", wrong_names_are_refused},
    {"a_path_is_read_above_and_written_below", a_path_is_read_above_and_written_below},
    {"wrong_options_are_refused", wrong_options_are_refused},
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
