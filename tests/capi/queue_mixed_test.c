/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Goal: callers that wait and requests that nobody waits for share one client without a loss: who
 * reads the connection changes hands all the time, and nobody hangs. Method: a poll loop with
 * hundreds of requests, threads in blocking calls, threads that wait for requests of the loop, and
 * threads that come and go, all on one client; each completion is counted. Then the same while
 * connections are dropped, and while the queue of the loop drives the client. Every wait has a
 * limit far above what is needed, and meets it only in a failure.
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "calls.h"
#include "harness.h"
#include "redlatch/redlatch.h"
#include "server.h"

enum { WAIT_MS = 10000, SLOT_COUNT = 300, STEP_COUNT = 12000, LOOPER_COUNT = 3, ROUND_COUNT = 500 };
enum { NAME_COUNT = 12, DROP_AFTER = 300, ALONE_COUNT = 600, SHORT_COUNT = 150 };

/* What the poll loop has in hand: an acquire, then the release of what it got. */
struct slot {
  rl_request* request;
  rl_lease* lease;
  int is_releasing;
  int tag_count; /* Of this request: one. */
};

struct mix {
  rl_client* client;
  rl_queue* queue;
  struct slot slots[SLOT_COUNT];
  int started_count;
  atomic_int finished_count;
  atomic_int blocking_count; /* Rounds of the threads in blocking calls. */
  atomic_int is_over;
  atomic_int inside[NAME_COUNT];
  int is_driving;  /* The queue of the poll loop drives the client. */
  int is_dropping; /* Connections: the outcome of a release may be unknown, a lease be lost. */
};

static struct mix mix;

/* Some names are everybody's, the others one slot's or thread's own. */
static size_t name_of(char* name, size_t size, int number) {
  if (number % 2 == 0) return (size_t)snprintf(name, size, "mixed-%d", number / 2 % NAME_COUNT);
  return (size_t)snprintf(name, size, "own-%d", number);
}

static void check_status(rl_status status, const char* step) {
  const int is_fine = status == RL_OK ||
                      (mix.is_dropping && (status == RL_E_OUTCOME_UNKNOWN || status == RL_E_LOST));
  if (!CHECK(is_fine)) fprintf(stderr, "  %s: %s\n", step, rl_status_name(status));
}

/* ---- callers that block ---------------------------------------------------------------------- */

static void enter(int number) {
  if (number % 2 != 0 || mix.is_dropping) return;
  CHECK_INT(0, atomic_fetch_add(&mix.inside[number / 2 % NAME_COUNT], 1));
}

static void leave(int number) {
  if (number % 2 != 0 || mix.is_dropping) return;
  atomic_fetch_sub(&mix.inside[number / 2 % NAME_COUNT], 1);
}

static void block_once(int number) {
  rl_error* err = rl_error_new();
  char name[32];
  const size_t length = name_of(name, sizeof name, number);
  rl_lease* lease = rl_acquire(mix.client, name, length, WAIT_MS, NULL, err);
  check_status(rl_error_status(err), "acquire");
  if (lease != NULL) {
    enter(number);
    leave(number);
    check_status(rl_release(lease, NULL), "release");
    rl_lease_free(lease);
  }
  rl_error_free(err);
}

/* Waits for a request by itself that is watched as well. */
static void wait_once(int number, rl_queue* queue) {
  char name[32];
  const size_t length = name_of(name, sizeof name, number);
  rl_request* request = rl_acquire_start(mix.client, name, length, WAIT_MS, NULL);
  CHECK_INT(RL_OK, rl_request_watch(request, queue, number + 1));
  check_status(rl_request_wait(request, WAIT_MS), "wait");
  CHECK_INT(number + 1, rl_queue_next(queue, WAIT_MS));
  CHECK_INT(0, rl_queue_next(queue, 0));
  rl_request_free(request);
}

static void* loop(void* argument) {
  const int first = (int)(intptr_t)argument;
  rl_queue* queue = rl_queue_new(NULL);
  int i;
  for (i = 0; i < ROUND_COUNT && failure_count() < 20; ++i) {
    if (i % 3 == 2) {
      wait_once(first + i, queue);
    } else {
      block_once(first + i);
    }
    atomic_fetch_add(&mix.blocking_count, 1);
  }
  rl_queue_free(queue);
  return NULL;
}

static void* come_and_go(void* argument) {
  const int number = (int)(intptr_t)argument;
  block_once(number);
  block_once(number + 1);
  atomic_fetch_add(&mix.blocking_count, 2);
  return NULL;
}

/* One at a time, each with a life of two calls. */
static void* send_short_lived(void* unused) {
  int i;
  (void)unused;
  for (i = 0; i < SHORT_COUNT && failure_count() < 20; ++i) {
    pthread_t threads[2];
    size_t k;
    for (k = 0; k < TEST_COUNT(threads); ++k) {
      const intptr_t number = 5000 + 10 * i + 2 * (intptr_t)k;
      if (!CHECK(pthread_create(&threads[k], NULL, come_and_go, (void*)number) == 0)) abort();
    }
    for (k = 0; k < TEST_COUNT(threads); ++k) pthread_join(threads[k], NULL);
  }
  return NULL;
}

/* Gives up waiting again and again, but not to the end: then the loop is left to itself. */
static void* nudge(void* unused) {
  char name[32];
  int number = 0;
  (void)unused;
  while (!atomic_load(&mix.is_over) && atomic_load(&mix.finished_count) < STEP_COUNT / 2) {
    const size_t length = name_of(name, sizeof name, number += 2);
    rl_request* request = rl_acquire_start(mix.client, name, length, -1, NULL);
    const rl_status status = rl_request_wait(request, 1);
    if (status != RL_PENDING) check_status(status, "nudge");
    rl_request_free(request);
  }
  return NULL;
}

/* ---- the poll loop --------------------------------------------------------------------------- */

static void start_slot(int i) {
  struct slot* slot = &mix.slots[i];
  char name[32];
  memset(slot, 0, sizeof *slot);
  if (mix.started_count == STEP_COUNT) return;
  slot->request = rl_acquire_start(
      mix.client, name, name_of(name, sizeof name, 10000 + mix.started_count), WAIT_MS, NULL);
  ++mix.started_count;
  CHECK_INT(RL_OK, rl_request_watch(slot->request, mix.queue, i + 1));
}

static void end_slot(int i) {
  struct slot* slot = &mix.slots[i];
  const rl_status status = rl_request_status(slot->request);
  CHECK_INT(1, ++slot->tag_count);
  check_status(status, slot->is_releasing ? "release request" : "acquire request");
  if (!slot->is_releasing && status == RL_OK) {
    slot->lease = rl_request_take_lease(slot->request);
    CHECK(slot->lease != NULL);
    rl_request_free(slot->request);
    slot->request = rl_release_start(slot->lease);
    slot->is_releasing = 1;
    slot->tag_count = 0;
    CHECK_INT(RL_OK, rl_request_watch(slot->request, mix.queue, i + 1));
    return;
  }
  rl_request_free(slot->request);
  rl_lease_free(slot->lease);
  atomic_fetch_add(&mix.finished_count, 1);
  start_slot(i);
}

/* A loop that is told of changes only. */
static int watch_changes(int fd) {
  struct epoll_event event;
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  memset(&event, 0, sizeof event);
  event.events = EPOLLIN | EPOLLET;
  CHECK_INT(0, epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
  return epoll;
}

static void* poll_loop(void* unused) {
  struct pollfd pollfd = {rl_queue_fd(mix.queue), POLLIN, 0};
  struct epoll_event event;
  int epoll = watch_changes(pollfd.fd);
  int i;
  (void)unused;
  for (i = 0; i < SLOT_COUNT; ++i) start_slot(i);
  while (atomic_load(&mix.finished_count) < STEP_COUNT && failure_count() < 20) {
    int64_t tag;
    if (!CHECK_INT(1, mix.is_driving ? epoll_wait(epoll, &event, 1, WAIT_MS)
                                     : poll(&pollfd, 1, WAIT_MS))) {
      break;
    }
    while ((tag = rl_queue_next(mix.queue, 0)) != 0) {
      if (CHECK(tag >= 1 && tag <= SLOT_COUNT)) end_slot((int)tag - 1);
    }
  }
  CHECK_INT(STEP_COUNT, atomic_load(&mix.finished_count));
  CHECK_INT(0, rl_queue_next(mix.queue, 20));
  close(epoll);
  atomic_store(&mix.is_over, 1);
  return NULL;
}

/* ---- together -------------------------------------------------------------------------------- */

/* Each time when some more has been done, so that the faults alone cannot keep all from going on:
   what was in flight is cleaned up after each of them. */
static void drop_connections(void) {
  int next = DROP_AFTER;
  char reply[64];
  while (!atomic_load(&mix.is_over)) {
    if (atomic_load(&mix.finished_count) < next) {
      sleep_ms(1);
      continue;
    }
    next += DROP_AFTER;
    server_command(reply, sizeof reply, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes", NULL);
    server_command(reply, sizeof reply, "CLIENT", "KILL", "TYPE", "pubsub", "SKIPME", "yes", NULL);
  }
}

static void run_mix(const char* protocol, int is_dropping, int is_driving) {
  pthread_t loopers[LOOPER_COUNT], poller, sender, nudger;
  char options[64];
  intptr_t i;
  memset(&mix, 0, sizeof mix);
  mix.is_dropping = is_dropping;
  mix.is_driving = is_driving;
  /* With this limit of a command the library's thread has no other reason to look for a minute. */
  snprintf(options, sizeof options, "command_timeout=60s&protocol=%s", protocol);
  mix.client = client_with(options);
  mix.queue = rl_queue_new(NULL);
  if (is_driving) CHECK_INT(RL_OK, rl_queue_drive(mix.queue, mix.client));
  REQUIRE(pthread_create(&poller, NULL, poll_loop, NULL) == 0);
  REQUIRE(pthread_create(&sender, NULL, send_short_lived, NULL) == 0);
  REQUIRE(pthread_create(&nudger, NULL, nudge, NULL) == 0);
  for (i = 0; i < LOOPER_COUNT; ++i) {
    REQUIRE(pthread_create(&loopers[i], NULL, loop, (void*)(i * 1000)) == 0);
  }
  if (is_dropping) drop_connections();
  for (i = 0; i < LOOPER_COUNT; ++i) pthread_join(loopers[i], NULL);
  pthread_join(sender, NULL);
  pthread_join(poller, NULL);
  pthread_join(nudger, NULL);
  /* Alone: nobody that has left still has a role. */
  mix.started_count = STEP_COUNT - ALONE_COUNT;
  atomic_store(&mix.finished_count, STEP_COUNT - ALONE_COUNT);
  REQUIRE(pthread_create(&poller, NULL, poll_loop, NULL) == 0);
  pthread_join(poller, NULL);
  CHECK_INT(LOOPER_COUNT * ROUND_COUNT + 4 * SHORT_COUNT, atomic_load(&mix.blocking_count));
  rl_queue_free(mix.queue);
  rl_client_close(mix.client);
}

static void blocking_and_watched_calls_together(void) { run_mix("3", 0, 0); }

static void with_resp2(void) { run_mix("2", 0, 0); }

static void while_connections_are_dropped(void) { run_mix("3", 1, 0); }

static void with_resp2_while_connections_are_dropped(void) { run_mix("2", 1, 0); }

static void driven_by_a_queue(void) { run_mix("3", 0, 1); }

static void driven_by_a_queue_with_resp2(void) { run_mix("2", 0, 1); }

static void driven_while_connections_are_dropped(void) { run_mix("3", 1, 1); }

/* A caller that stood watch goes before its request is finished. */
static void whoever_leaves_passes_the_watch_on(void) {
  static const char name[] = "pass";
  rl_queue* queue = rl_queue_new(NULL);
  rl_client* clients[2];
  rl_lease* lease;
  rl_request* request;
  size_t i;
  for (i = 0; i < 2; ++i) clients[i] = client_with("command_timeout=60s");
  lease = rl_acquire(clients[0], name, 4, WAIT_MS, NULL, NULL);
  request = rl_acquire_start(clients[1], name, 4, -1, NULL);
  CHECK_INT(RL_OK, rl_request_watch(request, queue, 1));
  CHECK_INT(RL_PENDING, rl_request_wait(request, 100));
  CHECK_INT(RL_OK, rl_release(lease, NULL));
  CHECK_INT(1, rl_queue_next(queue, WAIT_MS));
  rl_request_free(request);
  rl_lease_free(lease);
  for (i = 0; i < 2; ++i) rl_client_close(clients[i]);
  rl_queue_free(queue);
}

static void* wait_for_lock(void* name) {
  rl_lease* lease =
      rl_acquire(mix.client, (const char*)name, strlen((const char*)name), WAIT_MS, NULL, NULL);
  CHECK(lease != NULL);
  rl_lease_free(lease);
  return NULL;
}

/* A caller reads; what another one starts is left to it to be sent; then it is told that it must
   wait. The server stands still meanwhile, so that all of this falls into one round trip. */
static void a_reader_sends_what_was_left_to_it(void) {
  static char names[2][4] = {"x", "y"};
  rl_queue* queue = rl_queue_new(NULL);
  rl_client* holder = server_client();
  rl_lease* leases[2];
  rl_request* request;
  pthread_t waiters[2];
  size_t i;
  mix.client = client_with("command_timeout=60s");
  for (i = 0; i < 2; ++i) leases[i] = rl_acquire(holder, names[i], 1, WAIT_MS, NULL, NULL);
  REQUIRE(pthread_create(&waiters[0], NULL, wait_for_lock, names[0]) == 0);
  sleep_ms(100); /* It stands in its queue, and watches. */
  kill(server_pid(), SIGSTOP);
  REQUIRE(pthread_create(&waiters[1], NULL, wait_for_lock, names[1]) == 0);
  sleep_ms(100); /* It reads. */
  request = rl_acquire_start(mix.client, "z", 1, WAIT_MS, NULL);
  CHECK_INT(RL_OK, rl_request_watch(request, queue, 1));
  kill(server_pid(), SIGCONT);
  CHECK_INT(1, rl_queue_next(queue, WAIT_MS));
  CHECK_INT(RL_OK, rl_request_status(request));
  for (i = 0; i < 2; ++i) rl_lease_free(leases[i]);
  for (i = 0; i < 2; ++i) pthread_join(waiters[i], NULL);
  rl_request_free(request);
  rl_queue_free(queue);
  rl_client_close(mix.client);
  rl_client_close(holder);
}

static const struct test tests[] = {
    {"a_reader_sends_what_was_left_to_it", a_reader_sends_what_was_left_to_it},
    {"whoever_leaves_passes_the_watch_on", whoever_leaves_passes_the_watch_on},
    {"blocking_and_watched_calls_together", blocking_and_watched_calls_together},
    {"with_resp2", with_resp2},
    {"driven_by_a_queue", driven_by_a_queue},
    {"driven_by_a_queue_with_resp2", driven_by_a_queue_with_resp2},
    {"driven_while_connections_are_dropped", driven_while_connections_are_dropped},
    {"while_connections_are_dropped", while_connections_are_dropped},
    {"with_resp2_while_connections_are_dropped", with_resp2_while_connections_are_dropped},
};

int main(int argc, char** argv) {
  server_url();
  return run_tests(tests, TEST_COUNT(tests), argc, argv);
}
