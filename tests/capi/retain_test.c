/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Goal: a retained lock is acquired again by its client without a call, and by every other client
 * as if it were free; and nothing that ends a lock leaves it retained. Method: two clients, threads
 * and a forked process. The steps one by one are in tests/unit/retaining_test.cc.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calls.h"
#include "harness.h"
#include "redlatch/redlatch.h"
#include "server.h"

enum { THREAD_COUNT = 64, TURNS = 20, PATIENCE_MS = 30000 };

static rl_client* clients[2];

/* `more`: the name and the value of another option; NULL: none. */
static rl_acquire_options* with(const char* retain, const char* more, const char* value) {
  rl_acquire_options* options = rl_acquire_options_new();
  CHECK_INT(RL_OK, rl_acquire_options_set(options, TEXT("retain"), retain, strlen(retain), NULL));
  if (more != NULL) {
    CHECK_INT(RL_OK,
              rl_acquire_options_set(options, more, strlen(more), value, strlen(value), NULL));
  }
  return options;
}

static rl_lease* acquire(rl_client* client, const char* name, int64_t wait_ms, const char* retain) {
  rl_acquire_options* options = with(retain, NULL, NULL);
  rl_lease* lease = rl_acquire(client, name, strlen(name), wait_ms, options, NULL);
  rl_acquire_options_free(options);
  return lease;
}

static void retain(const char* name) {
  rl_lease* lease = acquire(clients[0], name, PATIENCE_MS, "1m");
  REQUIRE(lease != NULL);
  give_back(lease);
  CHECK(!is_free(name));
}

static int64_t command_count(void) {
  return server_number("EVAL",
                       "return tonumber(string.match(redis.call('INFO', 'stats'), "
                       "'total_commands_processed:(%d+)'))",
                       "0", NULL);
}

static void the_next_acquire_needs_no_call(void) {
  char token[40], next_token[40];
  rl_lease* lease = acquire(clients[0], "again", 0, "1m");
  int64_t fence, commands;
  int i;
  REQUIRE(lease != NULL);
  fence = rl_lease_fence(lease);
  rl_lease_token(lease, token, sizeof token);
  give_back(lease);
  commands = command_count();
  for (i = 1; i <= TURNS; i++) {
    lease = acquire(clients[0], "again", i % 2 == 0 ? 0 : -1, "1m");
    REQUIRE(lease != NULL);
    CHECK_INT(fence + i, rl_lease_fence(lease));
    rl_lease_token(lease, next_token, sizeof next_token);
    CHECK(strcmp(token, next_token) == 0);
    give_back(lease);
  }
  /* Names of clients, and this question. */
  CHECK(command_count() < commands + TURNS / 2);
  lease = acquire(clients[1], "again", PATIENCE_MS, "1m");
  REQUIRE(lease != NULL);
  CHECK(rl_lease_fence(lease) > fence + TURNS);
  give_back(lease);
}

static void another_client_gets_it_at_once(void) {
  rl_lease* lease;
  retain("wanted");
  lease = rl_acquire(clients[1], TEXT("wanted"), PATIENCE_MS, NULL, NULL);
  REQUIRE(lease != NULL);
  CHECK(acquire(clients[0], "wanted", 0, "1m") == NULL);
  give_back(lease);
  lease = acquire(clients[0], "wanted", 0, "1m");
  CHECK(lease != NULL);
  give_back(lease);
}

static void a_try_gets_it_as_well(void) {
  rl_error* err = rl_error_new();
  rl_lease* lease = NULL;
  int tries = 0;
  /* A try waits for a few ms only: on a busy machine the holder may be late. */
  while (lease == NULL && tries++ < 50) {
    retain("tried");
    lease = rl_acquire(clients[1], TEXT("tried"), 0, NULL, err);
    if (lease == NULL) CHECK_INT(RL_BUSY, rl_error_status(err));
  }
  CHECK(lease != NULL);
  give_back(lease);
  rl_error_free(err);
}

static void a_try_does_not_get_what_is_in_use(void) {
  rl_error* err = rl_error_new();
  rl_lease* lease = acquire(clients[0], "used", 0, "1m");
  REQUIRE(lease != NULL);
  CHECK(rl_acquire(clients[1], TEXT("used"), 0, NULL, err) == NULL);
  CHECK_INT(RL_BUSY, rl_error_status(err));
  CHECK_HAS("used", rl_error_message(err));
  CHECK_INT(RL_LEASE_HELD, rl_lease_state(lease));
  give_back(lease);
  CHECK(is_free("used")); /* It was recalled. */
  rl_error_free(err);
}

/* ---- two clients, and a resource that refuses lower fences ----------------------------------- */

static atomic_int is_over;
static _Atomic int64_t highest;
static atomic_int inside;

static void use(rl_lease* lease) {
  const int64_t fence = rl_lease_fence(lease);
  CHECK_INT(1, atomic_fetch_add(&inside, 1) + 1);
  CHECK(fence > atomic_exchange(&highest, fence));
  atomic_fetch_sub(&inside, 1);
}

static void* loop(void* argument) {
  (void)argument;
  while (!atomic_load(&is_over)) {
    rl_lease* lease = acquire(clients[0], "turns", PATIENCE_MS, "1m");
    if (!CHECK(lease != NULL)) return NULL;
    use(lease);
    give_back(lease);
  }
  return NULL;
}

static void a_loop_lets_others_in(void) {
  pthread_t thread;
  int i;
  atomic_store(&is_over, 0);
  REQUIRE(pthread_create(&thread, NULL, loop, NULL) == 0);
  for (i = 0; i < TURNS; i++) {
    rl_lease* lease = rl_acquire(clients[1], TEXT("turns"), PATIENCE_MS, NULL, NULL);
    if (!CHECK(lease != NULL)) break;
    use(lease);
    give_back(lease);
  }
  atomic_store(&is_over, 1);
  pthread_join(thread, NULL);
}

static void* turns(void* argument) {
  int i;
  (void)argument;
  for (i = 0; i < TURNS; i++) {
    rl_lease* lease = acquire(clients[0], "threads", PATIENCE_MS, "1m");
    if (!CHECK(lease != NULL)) return NULL;
    use(lease);
    give_back(lease);
  }
  return NULL;
}

static void threads_of_a_client_take_turns(void) {
  pthread_t threads[THREAD_COUNT];
  size_t i;
  atomic_store(&highest, 0);
  for (i = 0; i < THREAD_COUNT; i++) {
    REQUIRE(pthread_create(&threads[i], NULL, turns, NULL) == 0);
  }
  for (i = 0; i < THREAD_COUNT; i++) pthread_join(threads[i], NULL);
}

/* ---- readers --------------------------------------------------------------------------------- */

static rl_lease* acquire_read(rl_client* client, const char* name) {
  rl_acquire_options* options = with("1m", NULL, NULL);
  rl_lease* lease = rl_rw_acquire_read(client, name, strlen(name), PATIENCE_MS, options, NULL);
  rl_acquire_options_free(options);
  return lease;
}

static void the_next_reader_needs_no_call(void) {
  rl_lease* leases[2];
  rl_lease* lease;
  int64_t fence, commands;
  int i;
  for (i = 0; i < 2; i++) REQUIRE((leases[i] = acquire_read(clients[0], "readers")) != NULL);
  fence = rl_lease_fence(leases[0]);
  for (i = 0; i < 2; i++) give_back(leases[i]);
  commands = command_count();
  for (i = 0; i < TURNS; i++) {
    lease = acquire_read(clients[0], "readers");
    REQUIRE(lease != NULL);
    CHECK_INT(fence, rl_lease_fence(lease));
    CHECK_INT(RL_MODE_READ, rl_lease_mode(lease));
    give_back(lease);
  }
  CHECK(command_count() < commands + TURNS / 2);
  CHECK(!is_free("readers"));
  lease = rl_acquire(clients[1], TEXT("readers"), PATIENCE_MS, NULL, NULL);
  REQUIRE(lease != NULL);
  CHECK(rl_lease_fence(lease) > fence);
  give_back(lease);
  CHECK(is_free("readers"));
}

static atomic_int reading, writing;

static void* read_in_turns(void* argument) {
  int i;
  (void)argument;
  for (i = 0; i < TURNS; i++) {
    rl_lease* lease = acquire_read(clients[0], "library");
    if (!CHECK(lease != NULL)) return NULL;
    atomic_fetch_add(&reading, 1);
    CHECK_INT(0, atomic_load(&writing));
    CHECK(rl_lease_fence(lease) > atomic_load(&highest));
    atomic_fetch_sub(&reading, 1);
    give_back(lease);
  }
  return NULL;
}

static void readers_let_a_writer_in(void) {
  pthread_t threads[THREAD_COUNT];
  size_t i;
  atomic_store(&highest, 0);
  for (i = 0; i < THREAD_COUNT; i++) {
    REQUIRE(pthread_create(&threads[i], NULL, read_in_turns, NULL) == 0);
  }
  for (i = 0; i < TURNS; i++) {
    rl_lease* lease = rl_rw_acquire_write(clients[1], TEXT("library"), PATIENCE_MS, NULL, NULL);
    if (!CHECK(lease != NULL)) break;
    CHECK_INT(1, atomic_fetch_add(&writing, 1) + 1);
    CHECK_INT(0, atomic_load(&reading));
    CHECK(rl_lease_fence(lease) > atomic_exchange(&highest, rl_lease_fence(lease)));
    atomic_fetch_sub(&writing, 1);
    give_back(lease);
  }
  for (i = 0; i < THREAD_COUNT; i++) pthread_join(threads[i], NULL);
}

/* ---- its end --------------------------------------------------------------------------------- */

static void it_ends_by_time(void) {
  rl_lease* lease = acquire(clients[0], "short", 0, "50ms");
  REQUIRE(lease != NULL);
  give_back(lease);
  EVENTUALLY(is_free("short"), PATIENCE_MS);
}

static void close_gives_all_back(void) {
  rl_client* client = server_client();
  char name[16];
  int i;
  for (i = 0; i < 100; i++) {
    snprintf(name, sizeof name, "all %d", i);
    give_back(acquire(client, name, 0, "1m"));
  }
  CHECK(!is_free("all 99"));
  rl_client_close(client);
  for (i = 0; i < 100; i++) {
    snprintf(name, sizeof name, "all %d", i);
    CHECK(is_free(name));
  }
}

/* From its message on; until then the client believes in its lease, as every holder does. */
static int is_acquired_on_the_server(const char* name) {
  rl_lease* lease = acquire(clients[0], name, PATIENCE_MS, "0");
  const int is_good = lease != NULL && rl_release(lease, NULL) == RL_OK;
  rl_lease_free(lease);
  return is_good;
}

static void a_forced_release_ends_it(void) {
  retain("forced");
  CHECK_INT(RL_OK, rl_force_release_any(clients[1], TEXT("forced"), NULL));
  CHECK(is_free("forced"));
  EVENTUALLY(is_acquired_on_the_server("forced"), PATIENCE_MS);
}

static void a_restart_without_data_ends_it(void) {
  rl_lease* lease = NULL;
  retain("restart");
  server_kill();
  server_url();
  EVENTUALLY(
      (lease = acquire(clients[0], "restart", PATIENCE_MS, "1m")) != NULL && !is_free("restart"),
      PATIENCE_MS);
  REQUIRE(lease != NULL);
  CHECK_INT(RL_LEASE_HELD, rl_lease_state(lease));
  give_back(lease);
}

static void a_child_has_nothing(void) {
  int status = -1;
  pid_t child;
  rl_lease* lease;
  retain("forked");
  child = fork();
  if (child == 0) {
    _exit(acquire(clients[0], "forked", 0, "1m") == NULL ? 0 : 1);
  }
  REQUIRE(child > 0 && waitpid(child, &status, 0) == child);
  CHECK_INT(0, status);
  lease = acquire(clients[0], "forked", 0, "1m");
  CHECK(lease != NULL);
  give_back(lease);
}

static void max_hold_counts_for_each_caller(void) {
  rl_acquire_options* options = with("1m", "max_hold", "100ms");
  rl_lease* lease;
  retain("limited");
  lease = rl_acquire(clients[0], TEXT("limited"), 0, options, NULL);
  REQUIRE(lease != NULL);
  CHECK_INT(RL_LEASE_LOST, rl_lease_wait_lost(lease, PATIENCE_MS));
  CHECK_INT(RL_LOST_MAX_HOLD, rl_lease_lost_reason(lease));
  rl_lease_free(lease);
  EVENTUALLY(is_free("limited"), PATIENCE_MS);
  rl_acquire_options_free(options);
}

static void a_lease_of_it_can_be_detached(void) {
  char token[RL_TOKEN_BYTES + 1];
  rl_lease* lease;
  retain("moved");
  lease = acquire(clients[0], "moved", 0, "1m");
  REQUIRE(lease != NULL);
  CHECK_INT(RL_OK, rl_lease_detach(lease, token, sizeof token, NULL));
  rl_lease_free(lease);
  check_attachable(clients[1], "moved", token);
  CHECK(is_free("moved"));
}

static void a_writer_that_retained_may_downgrade(void) {
  rl_lease* lease;
  retain("mode");
  lease = acquire(clients[0], "mode", 0, "1m");
  REQUIRE(lease != NULL);
  CHECK_INT(RL_OK, rl_rw_downgrade(lease, NULL));
  CHECK_INT(RL_LEASE_HELD, rl_lease_state(lease));
  give_back(lease);
  CHECK(is_free("mode"));
}

static void a_reader_of_the_same_client_gets_it(void) {
  rl_lease* lease;
  retain("read");
  lease = rl_rw_acquire_read(clients[0], TEXT("read"), PATIENCE_MS, NULL, NULL);
  CHECK(lease != NULL);
  give_back(lease);
}

static void also_with_resp2(void) {
  rl_client* client = client_with("protocol=2");
  rl_lease* lease = acquire(client, "resp2", PATIENCE_MS, "1m");
  REQUIRE(lease != NULL);
  give_back(lease);
  CHECK(!is_free("resp2"));
  lease = rl_acquire(clients[1], TEXT("resp2"), PATIENCE_MS, NULL, NULL);
  CHECK(lease != NULL);
  give_back(lease);
  rl_client_close(client);
}

/* ---- where it is refused --------------------------------------------------------------------- */

static void it_is_refused_with_the_reason(void) {
  static const char* const kinds[][3] = {{"limit", "3", "a semaphore"},
                                         {"id", "me", "an election"},
                                         {"format", "hash", "another format"}};
  rl_error* err = rl_error_new();
  rl_names* names = rl_names_new();
  rl_acquire_options* options;
  size_t i;
  for (i = 0; i < TEST_COUNT(kinds); i++) {
    options = with("5s", kinds[i][0], kinds[i][1]);
    CHECK(rl_acquire(clients[0], TEXT("refused"), 0, options, err) == NULL);
    CHECK_INT(RL_E_INVALID, rl_error_status(err));
    CHECK_HAS("option 'retain' must be 0 for ", rl_error_message(err));
    CHECK_HAS(kinds[i][2], rl_error_message(err));
    CHECK_HAS("(got 5000 ms)", rl_error_message(err));
    rl_acquire_options_free(options);
  }
  options = with("5s", NULL, NULL);
  rl_names_add(names, TEXT("a"), RL_MODE_WRITE, NULL);
  rl_names_add(names, TEXT("b"), RL_MODE_WRITE, NULL);
  CHECK(rl_acquire_all(clients[0], names, 0, options, err) == NULL);
  CHECK_HAS("option 'retain' must be 0 for several names", rl_error_message(err));
  CHECK(rl_lease_attach(clients[0], TEXT("a"), TEXT("AAAAAAAAAAAAAAAAAAAAAA0000000001"), 0, options,
                        err) == NULL);
  CHECK_HAS("option 'retain' must be 0 for an attach", rl_error_message(err));
  rl_names_free(names);
  rl_acquire_options_free(options);
  rl_error_free(err);
}

static const struct test tests[] = {
    {"the_next_acquire_needs_no_call", the_next_acquire_needs_no_call},
    {"another_client_gets_it_at_once", another_client_gets_it_at_once},
    {"a_try_gets_it_as_well", a_try_gets_it_as_well},
    {"a_try_does_not_get_what_is_in_use", a_try_does_not_get_what_is_in_use},
    {"a_loop_lets_others_in", a_loop_lets_others_in},
    {"threads_of_a_client_take_turns", threads_of_a_client_take_turns},
    {"the_next_reader_needs_no_call", the_next_reader_needs_no_call},
    {"readers_let_a_writer_in", readers_let_a_writer_in},
    {"it_ends_by_time", it_ends_by_time},
    {"close_gives_all_back", close_gives_all_back},
    {"a_forced_release_ends_it", a_forced_release_ends_it},
    {"a_child_has_nothing", a_child_has_nothing},
    {"max_hold_counts_for_each_caller", max_hold_counts_for_each_caller},
    {"a_lease_of_it_can_be_detached", a_lease_of_it_can_be_detached},
    {"a_writer_that_retained_may_downgrade", a_writer_that_retained_may_downgrade},
    {"a_reader_of_the_same_client_gets_it", a_reader_of_the_same_client_gets_it},
    {"also_with_resp2", also_with_resp2},
    {"it_is_refused_with_the_reason", it_is_refused_with_the_reason},
    {"a_restart_without_data_ends_it", a_restart_without_data_ends_it},
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
