/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Goal: a queue tells what has happened, each thing once, to whoever polls it, and nothing is left
 * when requests, queues and clients are freed in any order. Method: one thread and one queue over a
 * real server, which is stopped where limits have to hold without it.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "calls.h"
#include "harness.h"
#include "redlatch/redlatch.h"
#include "server.h"

enum { WAIT_MS = 10000, MANY = 200 };

static void tags_come_in_order_and_once(void) {
  rl_queue* queue = rl_queue_new(NULL);
  int64_t tag;
  REQUIRE(queue != NULL);
  CHECK(!is_readable(queue));
  CHECK_INT(0, rl_queue_next(queue, 0));
  for (tag = 1; tag <= MANY; ++tag) CHECK_INT(RL_OK, rl_queue_post(queue, tag));
  CHECK_INT(RL_OK, rl_queue_post(queue, -7));
  for (tag = 1; tag <= MANY; ++tag) {
    CHECK(is_readable(queue));
    CHECK_INT(tag, rl_queue_next(queue, tag % 2 == 0 ? 0 : -1));
  }
  CHECK(is_readable(queue));
  CHECK_INT(-7, rl_queue_next(queue, 100));
  CHECK(!is_readable(queue));
  CHECK_INT(0, rl_queue_next(queue, 0));
  CHECK_INT(0, rl_queue_next(queue, 20));
  rl_queue_free(queue);
}

static void a_finished_request_posts_its_tag_once(void) {
  rl_client* client = server_client();
  rl_queue* queue = rl_queue_new(NULL);
  rl_request* request = rl_acquire_start(client, TEXT("once"), WAIT_MS, NULL);
  rl_lease* lease;
  CHECK_INT(RL_OK, rl_request_watch(request, queue, 4));
  CHECK_INT(RL_OK, rl_request_watch(request, queue, 5)); /* In the place of 4. */
  CHECK_INT(5, rl_queue_next(queue, WAIT_MS));
  CHECK_INT(RL_OK, rl_request_status(request));
  CHECK_INT(0, rl_queue_next(queue, 0));
  CHECK_INT(RL_OK, rl_request_cancel(request)); /* Finished: its result stands. */
  CHECK_INT(0, rl_queue_next(queue, 0));
  CHECK_INT(RL_OK, rl_request_watch(request, queue, 6)); /* It is finished: at once. */
  CHECK_INT(6, rl_queue_next(queue, 0));
  lease = rl_request_take_lease(request);
  rl_request_free(request);

  request = rl_release_start(lease);
  CHECK_INT(RL_OK, rl_request_watch(request, queue, 7));
  CHECK_INT(7, rl_queue_next(queue, WAIT_MS));
  CHECK_INT(RL_OK, rl_request_status(request));
  rl_request_free(request);
  rl_lease_free(lease);

  request = rl_acquire_start(NULL, TEXT("bad"), 0, NULL); /* Finished when it was made. */
  CHECK_INT(RL_OK, rl_request_watch(request, queue, 8));
  CHECK_INT(8, rl_queue_next(queue, 0));
  CHECK_INT(RL_E_INVALID, rl_request_status(request));
  rl_request_free(request);
  rl_queue_free(queue);
  rl_client_close(client);
}

static void connecting_is_a_request(void) {
  rl_client* client = server_client();
  rl_queue* queue = rl_queue_new(NULL);
  rl_request* request = rl_client_connect_start(client, WAIT_MS);
  CHECK_INT(RL_OK, rl_request_watch(request, queue, 1));
  CHECK_INT(1, rl_queue_next(queue, WAIT_MS));
  CHECK_INT(RL_OK, rl_request_status(request));
  CHECK(rl_request_take_lease(request) == NULL);
  rl_request_free(request);
  request = rl_client_connect_start(client, -2);
  CHECK_INT(RL_E_INVALID, rl_request_status(request));
  rl_request_free(request);
  rl_queue_free(queue);
  rl_client_close(client);
}

static void a_freed_request_posts_nothing(void) {
  rl_client* client = server_client();
  rl_queue* queue = rl_queue_new(NULL);
  rl_lease* lease = rl_acquire(client, TEXT("freed"), WAIT_MS, NULL, NULL);
  rl_request* request = rl_acquire_start(client, TEXT("freed"), WAIT_MS, NULL);
  CHECK_INT(RL_OK, rl_request_watch(request, queue, 1));
  CHECK_INT(RL_OK, rl_lease_watch(lease, queue, 2));
  rl_request_free(request);
  rl_lease_free(lease);
  CHECK_INT(0, rl_queue_next(queue, 50));
  rl_queue_free(queue);
  rl_client_close(client);
}

static void a_watch_can_be_taken_back(void) {
  rl_client* client = server_client();
  rl_queue* queue = rl_queue_new(NULL);
  rl_lease* lease = rl_acquire(client, TEXT("back"), WAIT_MS, NULL, NULL);
  rl_request* request = rl_acquire_start(client, TEXT("back"), WAIT_MS, NULL);
  CHECK_INT(RL_OK, rl_request_watch(request, queue, 1));
  CHECK_INT(RL_OK, rl_request_watch(request, NULL, 0));
  CHECK_INT(RL_OK, rl_lease_watch(lease, queue, 2));
  CHECK_INT(RL_OK, rl_lease_watch(lease, NULL, 0));
  CHECK_INT(RL_CANCELLED, rl_request_cancel(request));
  CHECK_INT(RL_OK, rl_release(lease, NULL));
  CHECK_INT(0, rl_queue_next(queue, 0));
  CHECK_INT(RL_OK, rl_lease_watch(lease, queue, 3)); /* It is not held: at once. */
  CHECK_INT(3, rl_queue_next(queue, 0));
  rl_request_free(request);
  rl_lease_free(lease);
  rl_queue_free(queue);
  rl_client_close(client);
}

static void a_lease_tells_how_it_ends(void) {
  rl_client* client = server_client();
  rl_queue* queue = rl_queue_new(NULL);
  rl_acquire_options* options = rl_acquire_options_new();
  rl_lease* released = rl_acquire(client, TEXT("ends-1"), WAIT_MS, NULL, NULL);
  rl_lease* lost;
  rl_lease* shut = rl_acquire(client, TEXT("ends-3"), WAIT_MS, NULL, NULL);
  rl_acquire_options_set_ttl_ms(options, 200);
  rl_acquire_options_set_renew(options, 0);
  lost = rl_acquire(client, TEXT("ends-2"), WAIT_MS, options, NULL);
  CHECK_INT(RL_OK, rl_lease_watch(released, queue, 1));
  CHECK_INT(RL_OK, rl_lease_watch(lost, queue, 2));
  CHECK_INT(RL_OK, rl_lease_watch(shut, queue, 3));
  CHECK_INT(RL_OK, rl_release(released, NULL));
  CHECK_INT(1, rl_queue_next(queue, WAIT_MS));
  CHECK_INT(2, rl_queue_next(queue, WAIT_MS));
  CHECK_INT(RL_LEASE_LOST, rl_lease_state(lost));
  rl_client_shutdown(client);
  CHECK_INT(3, rl_queue_next(queue, 0));
  CHECK_INT(RL_LEASE_RELEASED, rl_lease_state(shut));
  rl_acquire_options_free(options);
  rl_lease_free(released);
  rl_lease_free(lost);
  rl_lease_free(shut);
  rl_queue_free(queue);
  rl_client_close(client);
}

/* One thread has many of them, and no blocking call drives the connection. */
static void a_poll_loop_takes_turns(void) {
  rl_client* client = server_client();
  rl_queue* queue = rl_queue_new(NULL);
  rl_request* waiting[MANY];
  int taken[MANY] = {0};
  int count = 0;
  int i;
  for (i = 0; i < MANY; ++i) {
    waiting[i] = rl_acquire_start(client, TEXT("turns"), WAIT_MS, NULL);
    CHECK_INT(RL_OK, rl_request_watch(waiting[i], queue, i + 1));
  }
  while (count < MANY) {
    struct pollfd pollfd = {rl_queue_fd(queue), POLLIN, 0};
    int64_t tag;
    REQUIRE(poll(&pollfd, 1, WAIT_MS) == 1);
    while ((tag = rl_queue_next(queue, 0)) != 0) {
      rl_request* request = waiting[tag - 1];
      rl_lease* lease = rl_request_take_lease(request);
      REQUIRE(lease != NULL);
      CHECK_INT(count + 1, tag); /* First come, first served. */
      CHECK(!taken[tag - 1]++);
      count++;
      rl_request_free(request);
      rl_lease_free(lease);
    }
  }
  rl_queue_free(queue);
  rl_client_close(client);
}

static void shutdown_completes_what_is_pending(void) {
  rl_client* holder = server_client();
  rl_client* client = server_client();
  rl_queue* queue = rl_queue_new(NULL);
  rl_lease* lease = rl_acquire(holder, TEXT("shut"), WAIT_MS, NULL, NULL);
  rl_request* waiting[MANY];
  int64_t seen = 0;
  int i;
  for (i = 0; i < MANY; ++i) {
    waiting[i] = rl_acquire_start(client, TEXT("shut"), -1, NULL);
    CHECK_INT(RL_OK, rl_request_watch(waiting[i], queue, i + 1));
  }
  rl_client_close(client); /* The handles go on being valid. */
  for (i = 0; i < MANY; ++i) seen += rl_queue_next(queue, 0);
  CHECK_INT(MANY * (MANY + 1) / 2, seen);
  CHECK_INT(0, rl_queue_next(queue, 0));
  for (i = 0; i < MANY; ++i) {
    CHECK_INT(RL_E_CLOSED, rl_request_status(waiting[i]));
    rl_request_free(waiting[i]);
  }
  rl_lease_free(lease);
  rl_queue_free(queue);
  rl_client_close(holder);
}

static void a_queue_may_go_first(void) {
  rl_client* client = server_client();
  rl_queue* queue = rl_queue_new(NULL);
  rl_lease* lease = rl_acquire(client, TEXT("first"), WAIT_MS, NULL, NULL);
  rl_request* request = rl_acquire_start(client, TEXT("first"), WAIT_MS, NULL);
  CHECK_INT(RL_OK, rl_request_watch(request, queue, 1));
  CHECK_INT(RL_OK, rl_lease_watch(lease, queue, 2));
  rl_queue_free(queue);
  CHECK_INT(RL_OK, rl_release(lease, NULL));
  CHECK_INT(RL_OK, rl_request_wait(request, WAIT_MS));
  rl_request_free(request);
  rl_lease_free(lease);
  rl_client_close(client);
}

/* Limits that nobody waits for hold, also while the client sits in a handshake without an end. */
static void limits_hold_while_connecting(void) {
  rl_client* client = server_client();
  rl_queue* queue = rl_queue_new(NULL);
  rl_request* request;
  rl_request* other;
  kill(server_pid(), SIGSTOP);
  request = rl_acquire_start(client, TEXT("limits"), 50, NULL);
  other = rl_acquire_start(client, TEXT("limits"), 1900, NULL);
  CHECK_INT(RL_OK, rl_request_watch(other, queue, 2));
  CHECK_INT(RL_OK, rl_request_watch(request, queue, 1));
  CHECK_INT(1, rl_queue_next(queue, WAIT_MS));
  CHECK(rl_request_status(request) < 0);
  CHECK_INT(RL_PENDING, rl_request_status(other)); /* The attempt takes two seconds. */
  CHECK_INT(2, rl_queue_next(queue, WAIT_MS));
  kill(server_pid(), SIGCONT);
  rl_request_free(request);
  rl_request_free(other);
  rl_queue_free(queue);
  rl_client_close(client);
}

/* A server that reads nothing more holds nobody up, however much there is to be sent. */
static void starting_never_waits_for_the_server(void) {
  enum { PILE = 4000 };
  rl_client_options* slow = rl_client_options_new();
  rl_client* client;
  rl_queue* queue = rl_queue_new(NULL);
  rl_request* first;
  rl_request** pile = (rl_request**)calloc(PILE, sizeof *pile);
  char name[1024];
  int64_t started_ms;
  int i;
  memset(name, 'x', sizeof name);
  rl_client_options_set(slow, TEXT("command_timeout"), TEXT("20s"), NULL);
  client = rl_client_open(server_url(), strlen(server_url()), slow, NULL);
  first = rl_acquire_start(client, TEXT("pile"), WAIT_MS, NULL);
  CHECK_INT(RL_OK, rl_request_wait(first, WAIT_MS));
  kill(server_pid(), SIGSTOP);
  started_ms = now_ms();
  for (i = 0; i < PILE; ++i) {
    snprintf(name, 16, "%015d", i);
    name[15] = 'x';
    pile[i] = rl_acquire_start(client, name, sizeof name, -1, NULL);
    CHECK_INT(RL_OK, rl_request_watch(pile[i], queue, i + 1));
  }
  CHECK(now_ms() - started_ms < 10000); /* One that waited did so for 20 s. */
  kill(server_pid(), SIGCONT);
  for (i = 0; i < PILE; ++i) CHECK(rl_queue_next(queue, WAIT_MS) > 0);
  for (i = 0; i < PILE; ++i) CHECK_INT(RL_OK, rl_request_status(pile[i]));
  for (i = 0; i < PILE; ++i) rl_request_free(pile[i]);
  free(pile);
  rl_request_free(first);
  rl_client_options_free(slow);
  rl_queue_free(queue);
  rl_client_close(client);
}

static void* post_later(void* queue) {
  sleep_ms(20);
  rl_queue_post((rl_queue*)queue, 9);
  return NULL;
}

static void whoever_waits_is_woken(void) {
  rl_queue* queue = rl_queue_new(NULL);
  pthread_t thread;
  REQUIRE(pthread_create(&thread, NULL, post_later, queue) == 0);
  CHECK_INT(9, rl_queue_next(queue, WAIT_MS));
  pthread_join(thread, NULL);
  rl_queue_free(queue);
}

/* A lease of `client` that is lost, which is a line of its log. */
static void lose(rl_client* client, const char* name, int count) {
  rl_acquire_options* options = rl_acquire_options_new();
  rl_queue* ends = rl_queue_new(NULL);
  int i;
  rl_acquire_options_set_ttl_ms(options, 100);
  rl_acquire_options_set_renew(options, 0);
  for (i = 0; i < count; ++i) {
    rl_lease* lease = rl_acquire(client, name, strlen(name), WAIT_MS, options, NULL);
    REQUIRE(lease != NULL);
    CHECK_INT(RL_OK, rl_lease_watch(lease, ends, 1));
    CHECK_INT(1, rl_queue_next(ends, WAIT_MS)); /* The line comes before the tag. */
    rl_lease_free(lease);
  }
  rl_queue_free(ends);
  rl_acquire_options_free(options);
}

/* The lines of `client`, all of which have `name`. */
static int line_count(rl_client* client, const char* name) {
  char line[512];
  int count = 0;
  for (; rl_client_log_next(client, line, sizeof line) > 0; ++count) CHECK_HAS(name, line);
  return count;
}

static void each_client_has_its_own_lines(void) {
  rl_client* one = server_client();
  rl_client* other = server_client();
  rl_queue *queue = rl_queue_new(NULL), *second = rl_queue_new(NULL);
  CHECK_INT(RL_OK, rl_client_log_watch(one, RL_LOG_INFO, queue, 1));
  CHECK_INT(RL_OK, rl_client_log_watch(other, RL_LOG_INFO, queue, 2));
  CHECK_INT(RL_OK, rl_client_log_watch(one, RL_LOG_INFO, second, 3));
  lose(one, "log-one", 1);
  CHECK_INT(1, rl_queue_next(queue, WAIT_MS));
  CHECK_INT(3, rl_queue_next(second, WAIT_MS)); /* Any number of watches. */
  lose(other, "log-other", 2);
  CHECK_INT(2, rl_queue_next(queue, WAIT_MS));
  CHECK_INT(2, line_count(other, "log-other"));
  CHECK_INT(1, line_count(one, "log-one"));
  /* No more of the first watch; the second one stays, and again after all lines were taken. */
  CHECK_INT(RL_OK, rl_client_log_watch(one, RL_LOG_NONE, queue, 0));
  lose(one, "log-one", 1);
  CHECK_INT(3, rl_queue_next(second, WAIT_MS));
  CHECK_INT(0, rl_queue_next(queue, 0));
  CHECK_INT(0, line_count(other, "log-other"));
  /* A queue that was freed, and a client that was shut down. */
  rl_queue_free(second);
  lose(one, "log-one", 1);
  rl_client_shutdown(one);
  CHECK_INT(2, line_count(one, "log-one"));
  rl_client_close(other);
  rl_client_close(one);
  rl_queue_free(queue);
}

static void the_log_can_be_watched(void) {
  rl_client* client = server_client();
  rl_queue* queue = rl_queue_new(NULL);
  rl_acquire_options* options = rl_acquire_options_new();
  char line[512];
  int i;
  while (rl_client_log_next(client, line, sizeof line) > 0) continue;
  rl_acquire_options_set_ttl_ms(options, 100);
  rl_acquire_options_set_renew(options, 0);
  CHECK_INT(RL_OK, rl_client_log_watch(client, RL_LOG_ERROR, queue, 1));
  CHECK_INT(0, rl_queue_next(queue, 0));
  for (i = 0; i < 2; ++i) {
    rl_lease* lease = rl_acquire(client, TEXT("log"), WAIT_MS, options, NULL);
    CHECK_INT(1, rl_queue_next(queue, WAIT_MS));
    CHECK(rl_client_log_next(client, line, sizeof line) > 0);
    CHECK_HAS("error lock 'log' was lost", line);
    while (rl_client_log_next(client, line, sizeof line) > 0) continue;
    CHECK_INT(0, rl_queue_next(queue, 0));
    rl_lease_free(lease);
  }
  CHECK_INT(RL_OK, rl_client_log_watch(client, RL_LOG_NONE, queue, 0));
  rl_acquire_options_free(options);
  rl_queue_free(queue);
  rl_client_close(client);
}

static const struct test tests[] = {
    {"tags_come_in_order_and_once", tags_come_in_order_and_once},
    {"a_finished_request_posts_its_tag_once", a_finished_request_posts_its_tag_once},
    {"connecting_is_a_request", connecting_is_a_request},
    {"a_freed_request_posts_nothing", a_freed_request_posts_nothing},
    {"a_watch_can_be_taken_back", a_watch_can_be_taken_back},
    {"a_lease_tells_how_it_ends", a_lease_tells_how_it_ends},
    {"a_poll_loop_takes_turns", a_poll_loop_takes_turns},
    {"shutdown_completes_what_is_pending", shutdown_completes_what_is_pending},
    {"a_queue_may_go_first", a_queue_may_go_first},
    {"limits_hold_while_connecting", limits_hold_while_connecting},
    {"starting_never_waits_for_the_server", starting_never_waits_for_the_server},
    {"whoever_waits_is_woken", whoever_waits_is_woken},
    {"the_log_can_be_watched", the_log_can_be_watched},
    {"each_client_has_its_own_lines", each_client_has_its_own_lines},
};

int main(int argc, char** argv) { return run_tests(tests, TEST_COUNT(tests), 120, argc, argv); }
