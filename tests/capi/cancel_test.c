/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Goal: waits for a request keep their own limits, and many threads may wait for one. Method: a
 * few clients, one step after the other. Races of cancels and grants are in queue_race_test.c.
 */
#include <pthread.h>
#include <string.h>

#include "calls.h"
#include "harness.h"
#include "redlatch/redlatch.h"
#include "server.h"

enum { WAIT_MS = 10000 };

static void waiting_for_a_request_keeps_its_limit(void) {
  rl_client* client = server_client();
  rl_lease* lease = rl_acquire(client, TEXT("limit"), 0, NULL, NULL);
  int64_t start_ms = now_ms();
  rl_request* request = rl_acquire_start(client, TEXT("limit"), 300, NULL);
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
  rl_client* client = server_client();
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
    {"waiting_for_a_request_keeps_its_limit", waiting_for_a_request_keeps_its_limit},
    {"many_threads_may_wait_for_one_request", many_threads_may_wait_for_one_request},
};

int main(int argc, char** argv) { return run_tests(tests, TEST_COUNT(tests), argc, argv); }
