/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Goal: with a primary that a sentinel names, running out of memory or of threads at any moment
 * gives an honest status, no crash, no lock that stays behind, no thread and no descriptor.
 * Method: that of memory_test.c, against a real sentinel.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "calls.h"
#include "failures.h"
#include "harness.h"
#include "redlatch/redlatch.h"

enum { TTL_MS = 200, MOST_CALLS = 5000 };

static char sentinel_url[256];
static int64_t scenario_began_ms;

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

/* As in memory_test.c: on a busy machine a lease may end, and a wait may pass. */
static void check_honest(rl_status status, const char* step) {
  const int may_be_over = now_ms() - scenario_began_ms >= TTL_MS * 9 / 10;
  const int is_honest = status == RL_OK || status == RL_E_NO_MEMORY || status == RL_E_UNAVAILABLE ||
                        status == RL_E_OUTCOME_UNKNOWN || (status == RL_E_LOST && may_be_over);
  if (!CHECK(is_honest)) fprintf(stderr, "  %s: %s\n", step, rl_status_name(status));
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
  check_honest(rl_extend(lease, TTL_MS, NULL), "extend");
  status = rl_release(lease, NULL);
  check_honest(status, "release");
  if (status == RL_E_NO_MEMORY) check_honest(rl_release(lease, NULL), "second release");
}

/* The discovery, the watch, and the survey. */
static void run_scenario(void) {
  rl_acquire_options* options = rl_acquire_options_new();
  rl_error* err = rl_error_new();
  rl_client* client = options == NULL ? NULL : open_impatient();
  rl_lease* lease = NULL;
  if (client != NULL) {
    rl_acquire_options_set_ttl_ms(options, TTL_MS);
    lease = rl_acquire(client, TEXT("lock"), 2000, options, err);
    if (lease == NULL && err != NULL) check_honest(rl_error_status(err), "acquire");
    if (lease != NULL) use_lease(lease);
    rl_info_free(rl_client_check(client, 0, NULL));
    rl_info_free(rl_client_info(client, NULL));
  }
  rl_lease_free(lease);
  rl_client_close(client);
  rl_error_free(err);
  rl_acquire_options_free(options);
}

/* With so few threads: that of the client, that which connects, that which opens the watch. */
static void run_with_threads(long thread_count) {
  rl_client* client = open_impatient();
  if (client == NULL) return;
  atomic_store(&threads_left, thread_count);
  check_honest(rl_client_connect(client, 0, NULL), "connect");
  rl_lease_free(rl_acquire(client, TEXT("lock"), 15, NULL, NULL));
  atomic_store(&threads_left, -1);
  atomic_store(&calls_left, 0);
  CHECK_INT(RL_OK, rl_client_connect(client, 10000, NULL));
  rl_client_close(client);
}

static void run_without_a_thread(void) { run_with_threads(0); }
static void run_with_one_thread(void) { run_with_threads(1); }
static void run_with_two_threads(void) { run_with_threads(2); }

/* ---- each call in turn ----------------------------------------------------------------------- */

static int count_of(const char* folder) {
  DIR* open = opendir(folder);
  int count = 0;
  if (!CHECK(open != NULL)) return -1;
  while (readdir(open) != NULL) ++count;
  closedir(open);
  return count;
}

static int descriptor_count(void) { return count_of("/proc/self/fd"); }
/* Without "." and "..". */
static int thread_count(void) { return count_of("/proc/self/task") - 2; }

/* Nothing may stay locked for longer than its lease. */
static void check_nothing_is_left(rl_client* looker) {
  rl_error* err = rl_error_new();
  rl_lease* lease = rl_acquire(looker, TEXT("lock"), TTL_MS + 5000, NULL, err);
  if (!CHECK(lease != NULL)) fprintf(stderr, "  %s\n", rl_error_message(err));
  if (lease != NULL) CHECK_INT(RL_OK, rl_release(lease, err));
  rl_lease_free(lease);
  rl_error_free(err);
}

/* Threads and descriptors are those of before. `step` 2: every second call is tried. */
static void fail_at_each_call(void (*scenario)(void), long step, int fail_on) {
  rl_client* looker = open_client("");
  int descriptors, threads, is_met = 1;
  long nth;
  check_nothing_is_left(looker); /* with it all that is made once */
  /* Its watch and its health check are done when this call has been answered. */
  rl_info_free(rl_client_check(looker, 5000, NULL));
  EVENTUALLY(thread_count() == 2, 10000);
  descriptors = descriptor_count();
  threads = thread_count();
  for (nth = 1; is_met && nth < MOST_CALLS && failure_count() < 10; nth += step) {
    const int before = failure_count();
    atomic_store(&failed_count, 0);
    atomic_store(&is_failing_on, fail_on);
    atomic_store(&calls_left, nth);
    scenario_began_ms = now_ms();
    scenario();
    atomic_store(&calls_left, 0);
    is_met = atomic_load(&failed_count) > 0;
    check_nothing_is_left(looker);
    /* A thread that was joined may still be seen; the client of this test may watch anew. */
    EVENTUALLY(descriptor_count() == descriptors && thread_count() == threads, 10000);
    if (failure_count() != before) fprintf(stderr, "  at call %ld\n", nth);
  }
  /* A scenario that needs no memory tests nothing. */
  CHECK(nth > 20);
  CHECK(!is_met);
  printf(" (%ld calls)", nth);
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
