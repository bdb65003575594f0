/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Goal: a Redlock excludes threads of one handle and of several, by calls that wait and by
 * requests; a hung node ends a try by its own limit; closing returns at once. Method: five real
 * servers, counters that lose increments as soon as two threads are inside, SIGSTOP.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "calls.h"
#include "harness.h"
#include "redlatch/redlatch.h"
#include "server.h"

enum { NODE_COUNT = 5, THREAD_COUNT = 6, ROUND_COUNT = 40, LONGEST_MS = 60000 };

static atomic_int counter, inside_count;

static void select_and_signal(int node, int number) {
  server_select((size_t)node);
  kill(server_pid(), number);
  server_select(0);
}

/* The unix sockets of the first `count` nodes. */
static rl_client* open_redlock(int count, const char* name, const char* value, rl_error* err) {
  rl_client_options* options = rl_client_options_new();
  char urls[1024] = "";
  rl_client* redlock;
  int i;
  for (i = 0; i < count; ++i) {
    server_select((size_t)i);
    strcat(urls, server_url());
    strcat(urls, i % 2 ? "\n" : "  ");
  }
  server_select(0);
  CHECK_INT(RL_OK, rl_client_options_set(options, TEXT("restart_guard"), TEXT("off"), NULL));
  if (name != NULL) {
    CHECK_INT(RL_OK,
              rl_client_options_set(options, name, strlen(name), value, strlen(value), NULL));
  }
  redlock = rl_redlock_open(urls, strlen(urls), options, err);
  rl_client_options_free(options);
  return redlock;
}

/* On how many nodes there is a key `name`. */
static int key_count(const char* name) {
  int count = 0;
  int i;
  for (i = 0; i < NODE_COUNT; ++i) {
    server_select((size_t)i);
    count += (int)server_number("EXISTS", name, NULL);
  }
  server_select(0);
  return count;
}

static void enter_and_leave(void) {
  const int before = atomic_load(&counter);
  CHECK_INT(1, atomic_fetch_add(&inside_count, 1) + 1);
  atomic_store(&counter, before + 1);
  atomic_fetch_sub(&inside_count, 1);
}

static void* call(void* redlock) {
  rl_error* err = rl_error_new();
  int i;
  for (i = 0; i < ROUND_COUNT; ++i) {
    rl_lease* lease = rl_redlock_acquire(redlock, TEXT("counter"), LONGEST_MS, NULL, err);
    if (!CHECK(lease != NULL)) fprintf(stderr, "  %s\n", rl_error_message(err));
    if (lease == NULL) break;
    enter_and_leave();
    CHECK_INT(RL_OK, rl_release(lease, err));
    rl_lease_free(lease);
  }
  rl_error_free(err);
  return NULL;
}

/* By requests, some of which are cancelled on their way. */
static void* request(void* redlock) {
  int i;
  for (i = 0; i < ROUND_COUNT; ++i) {
    rl_request* wanted = rl_redlock_acquire_start(redlock, TEXT("counter"), LONGEST_MS, NULL);
    rl_request* unwanted = rl_redlock_acquire_start(redlock, TEXT("counter"), -1, NULL);
    rl_lease* lease;
    if (i % 2 == 0) rl_request_wait(unwanted, i % 8);
    rl_request_free(unwanted);
    if (!CHECK_INT(RL_OK, rl_request_wait(wanted, LONGEST_MS))) {
      fprintf(stderr, "  %s\n", rl_request_message(wanted));
    }
    lease = rl_request_take_lease(wanted);
    if (lease != NULL) enter_and_leave();
    rl_lease_free(lease);
    rl_request_free(wanted);
  }
  return NULL;
}

static void threads_exclude_each_other(void) {
  pthread_t threads[THREAD_COUNT];
  rl_client* redlocks[2];
  int i;
  for (i = 0; i < 2; ++i) {
    redlocks[i] = open_redlock(NODE_COUNT, NULL, NULL, NULL);
    REQUIRE(redlocks[i] != NULL);
  }
  atomic_store(&counter, 0);
  for (i = 0; i < THREAD_COUNT; ++i) {
    pthread_create(&threads[i], NULL, i % 3 == 0 ? request : call, redlocks[i % 2]);
  }
  for (i = 0; i < THREAD_COUNT; ++i) pthread_join(threads[i], NULL);
  CHECK_INT(THREAD_COUNT * ROUND_COUNT, atomic_load(&counter));
  for (i = 0; i < 2; ++i) rl_redlock_close(redlocks[i]);
  CHECK_INT(0, key_count("counter"));
}

/* By the limit of a node, not by that of a command. */
static void a_try_at_one_hung_node_ends(void) {
  rl_error* err = rl_error_new();
  rl_client* redlock = open_redlock(1, "command_timeout", "60s", err);
  int64_t began_ms;
  REQUIRE(redlock != NULL);
  CHECK_INT(RL_OK, rl_client_connect(redlock, LONGEST_MS, err));
  select_and_signal(0, SIGSTOP);
  began_ms = now_ms();
  CHECK(rl_redlock_acquire(redlock, TEXT("alone"), 0, NULL, err) == NULL);
  CHECK(now_ms() - began_ms < 30000);
  CHECK_INT(RL_E_UNAVAILABLE, rl_error_status(err));
  select_and_signal(0, SIGCONT);
  EVENTUALLY(server_number("EXISTS", "alone", NULL) == 0, LONGEST_MS);
  rl_redlock_close(redlock);
  rl_error_free(err);
}

#define UNSUPPORTED(call) CHECK_INT(RL_E_UNSUPPORTED, call)
#define NO_UNSUPPORTED_HANDLE(call)                 \
  do {                                              \
    CHECK((call) == NULL);                          \
    UNSUPPORTED(rl_error_status(err));              \
    CHECK_HAS("one server", rl_error_message(err)); \
  } while (0)

static void check_unsupported_request(rl_request* request) {
  CHECK_INT(RL_E_UNSUPPORTED, rl_request_wait(request, LONGEST_MS));
  CHECK_HAS("one server", rl_request_message(request));
  rl_request_free(request);
}

/* The calls of a client of one server that a Redlock answers, and those that it cannot. */
static void a_redlock_is_a_client(void) {
  rl_error* err = rl_error_new();
  rl_client* redlock = open_redlock(1, NULL, NULL, err);
  rl_queue* queue = rl_queue_new(err);
  rl_acquire_options* options = rl_acquire_options_new();
  rl_request* request;
  rl_lease* lease;
  char token[33];
  CHECK_INT(RL_OK, rl_client_connect(redlock, 5000, err));
  lease = rl_acquire(redlock, TEXT("one handle"), 0, NULL, err);
  REQUIRE(lease != NULL);
  CHECK(rl_redlock_acquire(redlock, TEXT("one handle"), 0, NULL, err) == NULL);
  CHECK_INT(RL_BUSY, rl_error_status(err));
  CHECK_INT(32, rl_lease_token(lease, token, sizeof token));
  CHECK_INT(RL_OK, rl_release(lease, err));
  rl_lease_free(lease);
  request = rl_acquire_start(redlock, TEXT("one handle"), 5000, NULL);
  CHECK_INT(RL_OK, rl_request_wait(request, -1));
  rl_request_free(request);
  CHECK_INT(RL_OK, rl_acquire_options_set_owner(options, TEXT("me")));
  CHECK(rl_acquire(redlock, TEXT("x"), 0, options, err) == NULL);
  CHECK_INT(RL_E_INVALID, rl_error_status(err));
  NO_UNSUPPORTED_HANDLE(rl_rw_acquire_read(redlock, TEXT("x"), 0, NULL, err));
  NO_UNSUPPORTED_HANDLE(rl_rw_acquire_write(redlock, TEXT("x"), 0, NULL, err));
  /* Whatever else is wrong with the options, as with the functions of a read-write lock. */
  CHECK_INT(RL_OK, rl_acquire_options_set(options, TEXT("mode"), TEXT("read"), err));
  NO_UNSUPPORTED_HANDLE(rl_acquire(redlock, TEXT("x"), 0, options, err));
  NO_UNSUPPORTED_HANDLE(rl_redlock_acquire(redlock, TEXT("x"), 0, options, err));
  request = rl_rw_acquire_read_start(redlock, TEXT("x"), 0, NULL);
  UNSUPPORTED(rl_request_status(request));
  rl_request_free(request);
  check_unsupported_request(rl_inspect_start(redlock, TEXT("x")));
  check_unsupported_request(rl_force_release_any_start(redlock, TEXT("x")));
  check_unsupported_request(rl_lease_attach_start(redlock, TEXT("x"), token, 32, 0, NULL));
  NO_UNSUPPORTED_HANDLE(rl_lease_attach(redlock, TEXT("x"), token, 32, 0, NULL, err));
  NO_UNSUPPORTED_HANDLE(rl_inspect(redlock, TEXT("x"), err));
  NO_UNSUPPORTED_HANDLE(rl_list_open(redlock, TEXT("*"), err));
  UNSUPPORTED(rl_force_release(redlock, TEXT("x"), TEXT("token"), err));
  CHECK_HAS("one server", rl_error_message(err));
  UNSUPPORTED(rl_queue_drive(queue, redlock));
  rl_acquire_options_free(options);
  rl_queue_free(queue);
  rl_client_close(redlock);
  rl_error_free(err);
}

/* A call of a Redlock with a client of one server is the call of the client. */
static void a_client_takes_calls_of_a_redlock(void) {
  rl_error* err = rl_error_new();
  rl_client* client = rl_client_open(server_url(), strlen(server_url()), NULL, err);
  rl_lease* lease;
  rl_request* request;
  REQUIRE(client != NULL);
  lease = rl_redlock_acquire(client, TEXT("one handle"), 5000, NULL, err);
  REQUIRE(lease != NULL);
  CHECK(rl_lease_fence(lease) > 0);
  CHECK(rl_acquire(client, TEXT("one handle"), 0, NULL, err) == NULL);
  request = rl_redlock_acquire_start(client, TEXT("another"), 5000, NULL);
  CHECK_INT(RL_OK, rl_request_wait(request, -1));
  rl_request_free(request);
  rl_lease_free(lease);
  rl_redlock_close(client);
  rl_error_free(err);
}

/* The nodes of a quorum, one of which is killed. */
static void each_node_is_described(void) {
  rl_client* redlock = open_redlock(3, NULL, NULL, NULL);
  rl_info* info;
  char text[256];
  int i;
  REQUIRE(redlock != NULL);
  CHECK_INT(RL_OK, rl_client_connect(redlock, LONGEST_MS, NULL));
  info = rl_client_info(redlock, NULL);
  CHECK_INT(3, rl_info_count(info, RL_PART_NODE));
  for (i = 0; i < 3; ++i) {
    server_select((size_t)i);
    CHECK(rl_info_text(info, RL_PART_NODE, i, RL_FIELD_ADDRESS, text, sizeof text) > 0);
    CHECK_HAS(text, server_url());
    CHECK_INT(RL_NODE_UP, rl_info_number(info, RL_PART_NODE, i, RL_FIELD_STATE));
    CHECK_INT(RL_ROLE_PRIMARY, rl_info_number(info, RL_PART_NODE, i, RL_FIELD_ROLE));
    CHECK_INT(1, rl_info_has(info, RL_PART_NODE, i, RL_FIELD_CLOCK_MS));
  }
  rl_info_free(info);
  server_select(2);
  server_kill();
  do {
    const rl_lease* lease = rl_redlock_acquire(redlock, TEXT("described"), 0, NULL, NULL);
    rl_lease_free((rl_lease*)lease);
    info = rl_client_info(redlock, NULL);
    i = (int)rl_info_number(info, RL_PART_NODE, 2, RL_FIELD_STATE);
    rl_info_text(info, RL_PART_NODE, 2, RL_FIELD_REASON, text, sizeof text);
    rl_info_free(info);
  } while (i == RL_NODE_UP);
  CHECK_INT(RL_NODE_AWAY, i);
  CHECK(strlen(text) > 0);
  server_url(); /* which starts it again */
  server_select(0);
  rl_client_close(redlock);
}

/* The library's thread, which reads for callers in a queue, must see the end wherever it is. */
static void closing_at_any_moment_returns(void) {
  rl_queue* queue = rl_queue_new(NULL);
  int i;
  for (i = 0; i < 400; ++i) {
    rl_client* redlock = open_redlock(3, "restart_guard", i % 2 ? "1h" : "off", NULL);
    rl_request* request;
    REQUIRE(redlock != NULL);
    request = rl_redlock_acquire_start(redlock, TEXT("closed early"), 0, NULL);
    CHECK_INT(RL_OK, rl_request_watch(request, queue, i + 1));
    /* Tags of those that were not waited for may be there still. */
    if (i % 4 < 2) {
      while (rl_queue_next(queue, LONGEST_MS) != i + 1) continue;
    }
    rl_request_free(request);
    rl_redlock_close(redlock);
  }
  rl_queue_free(queue);
}

static const struct test tests[] = {
    {"threads_exclude_each_other", threads_exclude_each_other},
    {"a_try_at_one_hung_node_ends", a_try_at_one_hung_node_ends},
    {"a_redlock_is_a_client", a_redlock_is_a_client},
    {"a_client_takes_calls_of_a_redlock", a_client_takes_calls_of_a_redlock},
    {"each_node_is_described", each_node_is_described},
    {"closing_at_any_moment_returns", closing_at_any_moment_returns},
};

int main(int argc, char** argv) { return run_tests(tests, TEST_COUNT(tests), argc, argv); }
