/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Goal: a cancel is decisive. Whatever crosses it, the caller has either the lease or RL_CANCELLED,
 * never both, and the lock is free or handed on afterwards. Method: thousands of races between a
 * cancel and the release that grants, each aimed at the moment where both outcomes are likely.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "harness.h"
#include "redlatch/redlatch.h"
#include "server.h"

#define TEXT(x) (x), (sizeof(x) - 1)

enum { RACE_COUNT = 3000, WAIT_MS = 10000 };

struct race {
  atomic_int round; /* The releaser starts with the round of the same number. */
  atomic_int done;  /* The last round that it has finished. */
  _Atomic(rl_lease*) lease;
};

static rl_client* open_client(void) {
  const char* url = server_url();
  return rl_client_open(url, strlen(url), NULL, NULL);
}

static void spin(int count) {
  volatile int left = count;
  while (left > 0) --left;
}

static void* release_each_round(void* argument) {
  struct race* race = (struct race*)argument;
  int round;
  for (round = 1; round <= RACE_COUNT; ++round) {
    rl_lease* lease;
    while (atomic_load(&race->round) < round) sched_yield();
    lease = atomic_load(&race->lease);
    if (lease == NULL) break;
    CHECK_INT(RL_OK, rl_release(lease, NULL));
    rl_lease_free(lease);
    atomic_store(&race->done, round);
  }
  return NULL;
}

/* @return whether the grant won. */
static int judge(rl_request* request, rl_status cancelled) {
  rl_lease* lease = rl_request_take_lease(request);
  CHECK(cancelled == RL_OK || cancelled == RL_CANCELLED);
  CHECK_INT(cancelled, rl_request_status(request));
  CHECK_INT(cancelled, rl_request_wait(request, 0));
  CHECK_INT(cancelled, rl_request_cancel(request));
  CHECK((lease != NULL) == (cancelled == RL_OK));
  if (lease != NULL) {
    CHECK_INT(RL_OK, rl_lease_check(lease, NULL));
    CHECK_INT(RL_OK, rl_release(lease, NULL));
    rl_lease_free(lease);
  }
  rl_request_free(request);
  return cancelled == RL_OK;
}

static void race_many(rl_client* holder, rl_client* waiter) {
  struct race race = {0, 0, NULL};
  pthread_t releaser;
  int delay = 1000;
  int granted_count = 0;
  int round;
  REQUIRE(pthread_create(&releaser, NULL, release_each_round, &race) == 0);
  for (round = 1; round <= RACE_COUNT; ++round) {
    rl_lease* lease = rl_acquire(holder, TEXT("race"), WAIT_MS, NULL, NULL);
    rl_request* request = rl_acquire_start(waiter, TEXT("race"), WAIT_MS, NULL);
    const int is_granted_soon = rl_request_wait(request, 0) == RL_OK;
    int is_granted;
    CHECK(lease != NULL && request != NULL && !is_granted_soon);
    atomic_store(&race.lease, lease);
    atomic_store(&race.round, round);
    if (lease == NULL || request == NULL) break;
    spin(delay);
    is_granted = judge(request, rl_request_cancel(request));
    granted_count += is_granted;
    /* Walk to where both happen, whatever the machine. */
    delay += is_granted ? -(delay / 8 + 1) : delay / 8 + 8;
    while (atomic_load(&race.done) < round) sched_yield();
    if (failure_count() > 20) {
      atomic_store(&race.lease, NULL);
      atomic_store(&race.round, RACE_COUNT);
      break;
    }
  }
  pthread_join(releaser, NULL);
  CHECK(granted_count > RACE_COUNT / 50);
  CHECK(RACE_COUNT - granted_count > RACE_COUNT / 50);
}

static void cancel_races_with_a_grant_of_another_client(void) {
  rl_client* holder = open_client();
  rl_client* waiter = open_client();
  race_many(holder, waiter);
  rl_client_close(holder);
  rl_client_close(waiter);
  EVENTUALLY(server_number("EXISTS", "race", NULL) == 0, 2000);
}

static void cancel_races_with_a_local_grant(void) {
  rl_client* client = open_client();
  race_many(client, client);
  rl_client_close(client);
  EVENTUALLY(server_number("EXISTS", "race", NULL) == 0, 2000);
}

/* The place in the queue goes too: the next one behind is granted by the release. */
static void a_cancelled_waiter_is_passed_over(void) {
  rl_client* holder = open_client();
  rl_client* first = open_client();
  rl_client* second = open_client();
  rl_lease* lease = rl_acquire(holder, TEXT("over"), 0, NULL, NULL);
  rl_request* cancelled = rl_acquire_start(first, TEXT("over"), -1, NULL);
  rl_request* waiting;
  CHECK_INT(RL_PENDING, rl_request_wait(cancelled, 20));
  waiting = rl_acquire_start(second, TEXT("over"), -1, NULL);
  CHECK_INT(RL_PENDING, rl_request_wait(waiting, 20));
  CHECK_INT(RL_CANCELLED, rl_request_cancel(cancelled));
  CHECK_INT(RL_OK, rl_release(lease, NULL));
  CHECK_INT(RL_OK, rl_request_wait(waiting, WAIT_MS));
  CHECK(rl_request_take_lease(cancelled) == NULL);
  rl_request_free(cancelled);
  rl_request_free(waiting);
  rl_lease_free(lease);
  rl_client_close(holder);
  rl_client_close(first);
  rl_client_close(second);
}

static void waiting_for_a_request_keeps_its_limit(void) {
  rl_client* client = open_client();
  rl_lease* lease = rl_acquire(client, TEXT("limit"), 0, NULL, NULL);
  rl_request* request = rl_acquire_start(client, TEXT("limit"), 300, NULL);
  int64_t start_ms = now_ms();
  CHECK_INT(RL_PENDING, rl_request_wait(request, 0));
  CHECK(now_ms() - start_ms < 100);
  CHECK_INT(RL_PENDING, rl_request_wait(request, 60));
  CHECK(now_ms() - start_ms >= 60);
  CHECK(now_ms() - start_ms < 290);
  CHECK_INT(RL_PENDING, rl_request_status(request));
  CHECK_INT(0, strcmp("", rl_request_message(request)));
  /* The request's own limit ends it. */
  CHECK_INT(RL_TIMEOUT, rl_request_wait(request, -1));
  CHECK(now_ms() - start_ms >= 299);
  CHECK(rl_request_take_lease(request) == NULL);
  rl_request_free(request);
  rl_lease_free(lease);
  rl_client_close(client);
}

static void* wait_for_it(void* request) {
  return rl_request_wait((rl_request*)request, WAIT_MS) == RL_OK ? request : NULL;
}

static void many_threads_may_wait_for_one_request(void) {
  rl_client* client = open_client();
  rl_lease* lease = rl_acquire(client, TEXT("many"), 0, NULL, NULL);
  rl_request* request = rl_acquire_start(client, TEXT("many"), -1, NULL);
  pthread_t threads[4];
  size_t i;
  for (i = 0; i < TEST_COUNT(threads); ++i) {
    REQUIRE(pthread_create(&threads[i], NULL, wait_for_it, request) == 0);
  }
  CHECK_INT(RL_PENDING, rl_request_wait(request, 20));
  CHECK_INT(RL_OK, rl_release(lease, NULL));
  for (i = 0; i < TEST_COUNT(threads); ++i) {
    void* result = NULL;
    pthread_join(threads[i], &result);
    CHECK(result == request);
  }
  rl_request_free(request);
  rl_lease_free(lease);
  rl_client_close(client);
}

static const struct test tests[] = {
    {"cancel_races_with_a_grant_of_another_client", cancel_races_with_a_grant_of_another_client},
    {"cancel_races_with_a_local_grant", cancel_races_with_a_local_grant},
    {"a_cancelled_waiter_is_passed_over", a_cancelled_waiter_is_passed_over},
    {"waiting_for_a_request_keeps_its_limit", waiting_for_a_request_keeps_its_limit},
    {"many_threads_may_wait_for_one_request", many_threads_may_wait_for_one_request},
};

int main(int argc, char** argv) { return run_tests(tests, TEST_COUNT(tests), 120, argc, argv); }
