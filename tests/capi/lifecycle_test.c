/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Goal: handles may be freed in any order, and whatever the order nothing stays locked. Method: one
 * of each handle, all permutations of their ends, with and without a shutdown before.
 */
#include <pthread.h>
#include <stdlib.h>

#include "calls.h"
#include "harness.h"
#include "redlatch/redlatch.h"
#include "server.h"

enum { HANDLE_COUNT = 6, FREE_LIMIT_MS = 2000 };

static rl_error* err;
static rl_client* other; /* Looks on, and is not part of what is freed. */

struct handles {
  rl_client* client;
  rl_lease* lease;       /* Holds "one". */
  rl_request* pending;   /* Waits for "two", which `other` holds. */
  rl_request* granted;   /* Holds "three", its lease is not taken. */
  rl_request* releasing; /* Gives "four" back. */
  rl_info* info;
};

static int make_handles(struct handles* all) {
  rl_lease* four;
  memset(all, 0, sizeof *all);
  all->client = server_client();
  if (!CHECK(all->client != NULL)) return 0;
  all->lease = rl_acquire(all->client, TEXT("one"), 1000, NULL, err);
  all->pending = rl_acquire_start(all->client, TEXT("two"), -1, NULL);
  all->granted = rl_acquire_start(all->client, TEXT("three"), 1000, NULL);
  four = rl_acquire(all->client, TEXT("four"), 1000, NULL, err);
  all->releasing = rl_release_start(four);
  all->info = rl_inspect(all->client, TEXT("one"), err);
  /* Its request goes on without it. */
  rl_lease_free(four);
  CHECK_INT(RL_OK, rl_request_wait(all->granted, 5000));
  return CHECK(all->lease && all->pending && all->granted && four && all->releasing && all->info);
}

static void end_handle(struct handles* all, int which) {
  switch (which) {
    case 0:
      rl_client_close(all->client);
      break;
    case 1:
      rl_lease_free(all->lease);
      break;
    case 2:
      rl_request_free(all->pending);
      break;
    case 3:
      rl_request_free(all->granted);
      break;
    case 4:
      rl_request_free(all->releasing);
      break;
    default:
      rl_info_free(all->info);
      break;
  }
}

static void check_order(const int* order, int shutdown_first) {
  rl_lease* two = rl_acquire(other, TEXT("two"), FREE_LIMIT_MS, NULL, err);
  const int before = failure_count();
  struct handles all;
  int i;
  REQUIRE(two != NULL);
  if (make_handles(&all)) {
    if (shutdown_first) rl_client_shutdown(all.client);
    for (i = 0; i < HANDLE_COUNT; ++i) {
      end_handle(&all, order[i]);
    }
  }
  EVENTUALLY(is_free("one"), FREE_LIMIT_MS);
  EVENTUALLY(is_free("three"), FREE_LIMIT_MS);
  EVENTUALLY(is_free("four"), FREE_LIMIT_MS);
  /* The waiter is gone, so a release here hands the lock to nobody. */
  CHECK_INT(RL_OK, rl_release(two, err));
  rl_lease_free(two);
  EVENTUALLY(is_free("two"), FREE_LIMIT_MS);
  if (failure_count() != before) {
    fprintf(stderr, "  order %d %d %d %d %d %d%s\n", order[0], order[1], order[2], order[3],
            order[4], order[5], shutdown_first ? " after a shutdown" : "");
  }
}

static void check_all_orders(int* order, int fixed_count, int shutdown_first) {
  int i;
  if (fixed_count == HANDLE_COUNT) {
    check_order(order, shutdown_first);
    return;
  }
  for (i = fixed_count; i < HANDLE_COUNT; ++i) {
    const int chosen = order[i];
    order[i] = order[fixed_count];
    order[fixed_count] = chosen;
    check_all_orders(order, fixed_count + 1, shutdown_first);
    order[fixed_count] = order[i];
    order[i] = chosen;
    if (failure_count() > 20) return;
  }
}

static void every_order_of_free(void) {
  int order[HANDLE_COUNT] = {0, 1, 2, 3, 4, 5};
  check_all_orders(order, 0, 0);
}

static void every_order_of_free_after_shutdown(void) {
  int order[HANDLE_COUNT] = {0, 1, 2, 3, 4, 5};
  check_all_orders(order, 0, 1);
}

/* The handle stays valid; what it was used for has ended. */
static void after_a_shutdown_everything_says_closed(void) {
  rl_lease* two = rl_acquire(other, TEXT("two"), FREE_LIMIT_MS, NULL, err);
  struct handles all;
  rl_request* late;
  REQUIRE(two != NULL && make_handles(&all));
  rl_client_shutdown(all.client);
  rl_client_shutdown(all.client);
  CHECK(is_free("one"));
  CHECK(is_free("three"));
  CHECK_INT(RL_LEASE_RELEASED, rl_lease_state(all.lease));
  CHECK_INT(0, rl_lease_remaining_ms(all.lease));
  CHECK_INT(RL_E_NOT_HELD, rl_lease_check(all.lease, err));
  CHECK_INT(RL_LEASE_RELEASED, rl_lease_wait_lost(all.lease, -1));
  CHECK_INT(RL_E_CLOSED, rl_release(all.lease, err));
  CHECK_INT(RL_E_CLOSED, rl_extend(all.lease, 1000, err));
  CHECK_INT(RL_E_CLOSED, rl_lease_detach(all.lease, NULL, 0, err));
  CHECK_INT(RL_E_CLOSED, rl_request_wait(all.pending, -1));
  CHECK_INT(RL_E_CLOSED, rl_request_cancel(all.pending));
  CHECK(rl_request_message(all.pending)[0] != '\0');
  CHECK(rl_request_take_lease(all.pending) == NULL);
  CHECK(rl_acquire(all.client, TEXT("one"), -1, NULL, err) == NULL);
  CHECK_INT(RL_E_CLOSED, rl_error_status(err));
  late = rl_acquire_start(all.client, TEXT("one"), -1, NULL);
  CHECK_INT(RL_E_CLOSED, rl_request_wait(late, -1));
  rl_request_free(late);
  CHECK_INT(RL_E_CLOSED, rl_client_connect(all.client, -1, err));
  CHECK(rl_inspect(all.client, TEXT("one"), err) == NULL);
  CHECK_INT(RL_E_CLOSED, rl_error_status(err));
  CHECK_INT(RL_E_CLOSED, rl_force_release_any(all.client, TEXT("one"), err));
  CHECK(rl_lease_attach(all.client, TEXT("one"), TEXT("012345678901234567890Affffffffff"), 0, NULL,
                        err) == NULL);
  CHECK_INT(RL_E_CLOSED, rl_error_status(err));
  rl_request_free(all.granted);
  rl_request_free(all.releasing);
  rl_info_free(all.info);
  rl_client_close(all.client);
  /* The last two without the client's handle. */
  CHECK_INT(RL_E_CLOSED, rl_release(all.lease, err));
  CHECK_INT(RL_E_CLOSED, rl_request_status(all.pending));
  rl_lease_free(all.lease);
  rl_request_free(all.pending);
  rl_lease_free(two);
}

static void* release_it(void* lease) {
  const rl_status status = rl_release((rl_lease*)lease, NULL);
  return status == RL_OK ? lease : NULL;
}

static void another_thread_may_release(void) {
  rl_lease* lease = rl_acquire(other, TEXT("thread"), 0, NULL, err);
  pthread_t thread;
  void* result = NULL;
  REQUIRE(lease != NULL);
  REQUIRE(pthread_create(&thread, NULL, release_it, lease) == 0);
  pthread_join(thread, &result);
  CHECK(result == lease);
  CHECK_INT(RL_LEASE_RELEASED, rl_lease_state(lease));
  CHECK(is_free("thread"));
  rl_lease_free(lease);
}

/* Of many threads that release one lease, one does it. */
static void only_one_of_many_releases_counts(void) {
  int round;
  for (round = 0; round < 100; ++round) {
    rl_lease* lease = rl_acquire(other, TEXT("race"), 2000, NULL, err);
    pthread_t threads[4];
    int done_count = 0;
    size_t i;
    REQUIRE(lease != NULL);
    for (i = 0; i < TEST_COUNT(threads); ++i) {
      REQUIRE(pthread_create(&threads[i], NULL, release_it, lease) == 0);
    }
    for (i = 0; i < TEST_COUNT(threads); ++i) {
      void* result = NULL;
      pthread_join(threads[i], &result);
      done_count += result != NULL;
    }
    CHECK_INT(1, done_count);
    rl_lease_free(lease);
  }
}

/* With the client still open, so that no shutdown does it for them. */
static void freed_handles_give_back_what_they_hold(void) {
  rl_lease* lease = rl_acquire(other, TEXT("freed"), 0, NULL, err);
  rl_request* request = rl_acquire_start(other, TEXT("untaken"), 0, NULL);
  REQUIRE(lease != NULL && request != NULL);
  CHECK_INT(RL_OK, rl_request_wait(request, 5000));
  CHECK(!is_free("freed") && !is_free("untaken"));
  rl_lease_free(lease);
  rl_request_free(request);
  EVENTUALLY(is_free("freed"), FREE_LIMIT_MS);
  EVENTUALLY(is_free("untaken"), FREE_LIMIT_MS);
  /* A release that was started goes on without its request, and without its lease. */
  lease = rl_acquire(other, TEXT("freed"), 0, NULL, err);
  REQUIRE(lease != NULL);
  rl_request_free(rl_release_start(lease));
  rl_lease_free(lease);
  EVENTUALLY(is_free("freed"), FREE_LIMIT_MS);
}

static const struct test tests[] = {
    {"every_order_of_free", every_order_of_free},
    {"every_order_of_free_after_shutdown", every_order_of_free_after_shutdown},
    {"after_a_shutdown_everything_says_closed", after_a_shutdown_everything_says_closed},
    {"another_thread_may_release", another_thread_may_release},
    {"only_one_of_many_releases_counts", only_one_of_many_releases_counts},
    {"freed_handles_give_back_what_they_hold", freed_handles_give_back_what_they_hold},
};

int main(int argc, char** argv) {
  int result;
  err = rl_error_new();
  other = server_client();
  if (other == NULL) return EXIT_FAILURE;
  result = run_tests(tests, TEST_COUNT(tests), argc, argv);
  rl_client_close(other);
  rl_error_free(err);
  return result;
}
