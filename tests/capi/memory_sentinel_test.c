/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Goal: with a primary that a sentinel names, running out of memory or of threads at any moment
 * gives an honest status, no crash, no lock that stays behind, no thread and no descriptor.
 * Method: that of memory_test.c, against a real sentinel.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "calls.h"
#include "failures.h"
#include "harness.h"
#include "redlatch/redlatch.h"

static char sentinel_url[256];

/* tests/support/one_sentinel, which ends when its standard input does. */
static void start_sentinel(void) {
  int input[2], output[2];
  size_t size = 0;
  pid_t pid;
  REQUIRE(pipe2(input, O_CLOEXEC) == 0 && pipe2(output, O_CLOEXEC) == 0);
  pid = fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    dup2(input[0], STDIN_FILENO);
    dup2(output[1], STDOUT_FILENO);
    execl(TEST_SENTINEL, TEST_SENTINEL, (char*)NULL);
    _exit(127);
  }
  close(input[0]); /* its other end stays open until this program has ended */
  close(output[1]);
  while (size < sizeof sentinel_url && read(output[0], sentinel_url + size, 1) == 1 &&
         sentinel_url[size] != '\n') {
    ++size;
  }
  close(output[0]);
  REQUIRE(size > 0 && size < sizeof sentinel_url);
  sentinel_url[size] = '\0';
}

static rl_client* open_client(const char* limits) {
  rl_error* err = rl_error_new();
  char url[320];
  rl_client* client;
  snprintf(url, sizeof url, "%s%s", sentinel_url, limits);
  client = rl_client_open(url, strlen(url), NULL, err);
  if (client == NULL && err != NULL) check_honest(rl_error_status(err), "open");
  rl_error_free(err);
  return client;
}

/* Without memory nothing is answered, and every limit is waited for. */
static rl_client* open_impatient(void) {
  return open_client("?command_timeout=30ms&connect_timeout=30ms");
}

/* ---- scenarios ------------------------------------------------------------------------------- */

static void use_lease(rl_lease* lease) {
  rl_status status;
  check_honest(rl_extend(lease, SCENARIO_TTL_MS, NULL), "extend");
  status = rl_release(lease, NULL);
  check_honest(status, "release");
  if (status == RL_E_NO_MEMORY) check_honest(rl_release(lease, NULL), "second release");
}

/* The discovery, the watch, and the survey. */
static void run_scenario(void) {
  rl_acquire_options* options = rl_acquire_options_new();
  rl_client* client = options == NULL ? NULL : open_impatient();
  rl_lease* lease = NULL;
  if (client != NULL) {
    rl_acquire_options_set_ttl_ms(options, SCENARIO_TTL_MS);
    lease = acquire_in_scenario(client, "blocking", options);
    if (lease != NULL) use_lease(lease);
    rl_info_free(rl_client_check(client, 0, NULL));
    rl_info_free(rl_client_info(client, NULL));
  }
  rl_lease_free(lease);
  rl_client_close(client);
  rl_acquire_options_free(options);
}

/* That of the client, that which connects, that which opens the watch. */
static void run_without_a_thread(void) { use_with_threads(open_impatient(), 0); }
static void run_with_one_thread(void) { use_with_threads(open_impatient(), 1); }
static void run_with_two_threads(void) { use_with_threads(open_impatient(), 2); }

/* ---- each call in turn ----------------------------------------------------------------------- */

static int fds, threads;

/* A thread that was joined may still be seen; the client of this test may watch anew. */
static void check_threads_and_descriptors(void) {
  EVENTUALLY(fd_count() == fds && thread_count() == threads, 10000);
}

/* Threads and descriptors are those of before. `step` 2: every second call is tried. */
static void fail_at_each_call(void (*scenario)(void), long step, int fail_on) {
  rl_client* looker = open_client("");
  rl_lease* lease = rl_acquire(looker, TEXT("blocking"), 5000, NULL, NULL);
  REQUIRE(lease != NULL); /* with it all that is made once */
  give_back(lease);
  /* Its watch and its health check are done when this call has been answered. */
  rl_info_free(rl_client_check(looker, 5000, NULL));
  EVENTUALLY(thread_count() == 2, 10000);
  fds = fd_count();
  threads = thread_count();
  fail_at_each(scenario, step, fail_on, looker, check_threads_and_descriptors);
  rl_client_close(looker);
}

static void one_call_fails(void) { fail_at_each_call(run_scenario, 1, 0); }

static void all_calls_fail_from_one_on(void) { fail_at_each_call(run_scenario, 2, 1); }

static void calls_fail_without_a_thread(void) {
  static void (*const scenarios[])(void) = {run_without_a_thread, run_with_one_thread,
                                            run_with_two_threads};
  size_t i;
  for (i = 0; i < TEST_COUNT(scenarios); ++i) {
    atomic_store(&refused_thread_count, 0);
    fail_at_each_call(scenarios[i], 2, 0);
    CHECK(atomic_load(&refused_thread_count) > 0);
  }
}

static const struct test tests[] = {
    {"one_call_fails", one_call_fails},
    {"all_calls_fail_from_one_on", all_calls_fail_from_one_on},
    {"calls_fail_without_a_thread", calls_fail_without_a_thread},
};

int main(int argc, char** argv) {
  start_sentinel();
  return run_tests(tests, TEST_COUNT(tests), argc, argv);
}
