/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Goal: credentials that there is no memory for change nothing or are used, and no lease ends.
 * Method: that of memory_test.c, with a password that is too long for a short string.
 */
#include <stdatomic.h>
#include <string.h>

#include "calls.h"
#include "failures.h"
#include "harness.h"
#include "redlatch/redlatch.h"
#include "server.h"

enum { MOST_CALLS = 100 };

static const char kPassword[] = "a-password-that-does-not-fit-into-the-object-of-a-string";

static void a_lease_outlives_each_failure(void) {
  rl_client* client;
  rl_queue* queue = rl_queue_new(NULL);
  rl_lease* lease;
  rl_status status = RL_E_NO_MEMORY;
  long nth;
  client = server_client();
  set_password(kPassword);
  CHECK_INT(RL_OK, rl_client_credentials_watch(client, queue, 1));
  CHECK_INT(RL_OK, rl_client_credentials_set(client, TEXT("app"), TEXT(kPassword), -1, NULL));
  lease = rl_acquire(client, TEXT("memory"), 0, NULL, NULL);
  REQUIRE(lease != NULL);
  for (nth = 1; nth < MOST_CALLS && status != RL_OK; ++nth) {
    int count;
    atomic_store(&failed_count, 0);
    atomic_store(&calls_left, nth);
    status = rl_client_credentials_set(client, TEXT("app"), TEXT(kPassword), -1, NULL);
    atomic_store(&calls_left, 0);
    count = atomic_load(&failed_count);
    CHECK(status == RL_E_NO_MEMORY || status == RL_OK);
    CHECK_INT(RL_OK, rl_extend(lease, 30000, NULL));
    if (status == RL_OK && count > 0) status = RL_E_NO_MEMORY; /* AUTH was, and is repeated */
  }
  CHECK(nth > 2 && nth < MOST_CALLS);
  for (nth = 1, status = RL_E_NO_MEMORY; nth < MOST_CALLS && status != RL_OK; ++nth) {
    atomic_store(&calls_left, nth);
    status = rl_client_credentials_fail(client, TEXT(kPassword), NULL);
    atomic_store(&calls_left, 0);
    CHECK(status == RL_E_NO_MEMORY || status == RL_OK);
  }
  CHECK_INT(RL_OK, rl_extend(lease, 30000, NULL));
  give_back(lease);
  rl_client_close(client);
  rl_queue_free(queue);
}

static const struct test tests[] = {
    {"a_lease_outlives_each_failure", a_lease_outlives_each_failure},
};

int main(int argc, char** argv) { return run_tests(tests, TEST_COUNT(tests), argc, argv); }
