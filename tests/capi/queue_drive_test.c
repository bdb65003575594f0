/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Goal: who takes tags from a queue that drives a client reads for it; no thread is woken for that,
 * nothing waits for a look that does not come, and the library reads again when the queue, or its
 * taker, is gone. Method: one client whose commands have a limit of a minute, so that the library's
 * thread has no other reason to look; a count of how often that thread ran; queues that nobody
 * looks at. queue_mixed has such a queue beside callers that block.
 */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/types.h>

#include "calls.h"
#include "harness.h"
#include "redlatch/redlatch.h"
#include "server.h"

enum { WAIT_MS = 30000, CYCLE_COUNT = 500, MANY = 64, TAKER_COUNT = 4, TAG_COUNT = 2000 };

static rl_client* open_patient(void) { return client_with("command_timeout=60s"); }

static int is_readable_within(const rl_queue* queue, int limit_ms) {
  struct pollfd pollfd = {rl_queue_fd(queue), POLLIN, 0};
  return poll(&pollfd, 1, limit_ms) == 1;
}

static rl_request* start(rl_client* client, rl_queue* queue, int number) {
  char name[32];
  const int length = snprintf(name, sizeof name, "driven-%d", number);
  rl_request* request = rl_acquire_start(client, name, (size_t)length, WAIT_MS, NULL);
  CHECK_INT(RL_OK, rl_request_watch(request, queue, number));
  return request;
}

/* Give back what `request`, which is finished, has got, and wait for that, too. */
static void finish(rl_queue* queue, rl_request* request) {
  rl_lease* lease = rl_request_take_lease(request);
  rl_request* release = rl_release_start(lease);
  CHECK_INT(RL_OK, rl_request_watch(release, queue, MANY + 1));
  CHECK_INT(MANY + 1, rl_queue_next(queue, WAIT_MS));
  CHECK_INT(RL_OK, rl_request_status(release));
  rl_request_free(release);
  rl_lease_free(lease);
  rl_request_free(request);
}

/* ---- who reads ------------------------------------------------------------------------------- */

/* How often the only thread of the library has gone to sleep so far; -1: there is none. */
static long background_thread_sleeps(void) {
  char line[256];
  long count = -1;
  FILE* list = popen("grep -l '^redlatch$' /proc/$PPID/task/*/comm", "r");
  if (list != NULL && fgets(line, sizeof line, list) != NULL) {
    char* end = strstr(line, "comm");
    FILE* status;
    if (end != NULL) snprintf(end, sizeof line - (size_t)(end - line), "status");
    status = fopen(line, "r");
    while (status != NULL && fgets(line, sizeof line, status) != NULL) {
      sscanf(line, "voluntary_ctxt_switches: %ld", &count);
    }
    if (status != NULL) fclose(status);
  }
  if (list != NULL) pclose(list);
  return count;
}

static void no_thread_is_woken_for_an_answer(void) {
  rl_client* client = open_patient();
  rl_queue* queue = rl_queue_new(NULL);
  long before;
  int i;
  CHECK_INT(RL_OK, rl_client_connect(client, WAIT_MS, NULL));
  CHECK_INT(RL_OK, rl_queue_drive(queue, client));
  before = background_thread_sleeps();
  CHECK(before >= 0);
  for (i = 0; i < CYCLE_COUNT && failure_count() == 0; ++i) {
    rl_request* request = start(client, queue, 7);
    CHECK(is_readable_within(queue, WAIT_MS));
    CHECK_INT(7, rl_queue_next(queue, WAIT_MS));
    finish(queue, request);
  }
  /* The first requests give it something to wait for. */
  CHECK(background_thread_sleeps() - before < CYCLE_COUNT / 10);
  rl_queue_free(queue);
  rl_client_close(client);
}

/* However many answers one read has found, and however few of their tags are taken at a look. */
static void readable_while_there_are_tags(void) {
  rl_client* client = open_patient();
  rl_queue* queue = rl_queue_new(NULL);
  rl_request* requests[MANY];
  int i;
  CHECK_INT(RL_OK, rl_queue_drive(queue, client)); /* Before it is connected. */
  for (i = 0; i < MANY; ++i) requests[i] = start(client, queue, i + 1);
  for (i = 0; i < MANY; ++i) {
    int64_t tag = 0;
    while (tag == 0 && CHECK(is_readable_within(queue, WAIT_MS))) tag = rl_queue_next(queue, 0);
  }
  for (i = 0; i < MANY; ++i) finish(queue, requests[i]);
  CHECK_INT(0, rl_queue_next(queue, 0));
  CHECK(!is_readable_within(queue, 0));
  rl_queue_free(queue);
  rl_client_close(client);
}

struct pool {
  rl_queue* queue;
  atomic_int counts[TAG_COUNT + 1];
  atomic_int taken_count;
};

static void* take_tags(void* argument) {
  struct pool* pool = (struct pool*)argument;
  int64_t tag;
  while ((tag = rl_queue_next(pool->queue, WAIT_MS)) > 0) {
    CHECK_INT(0, atomic_fetch_add(&pool->counts[tag], 1));
    atomic_fetch_add(&pool->taken_count, 1);
  }
  CHECK_INT(-1, tag);
  return NULL;
}

static void each_tag_goes_to_one_of_many_takers(void) {
  static struct pool pool;
  static rl_request* requests[TAG_COUNT + 1];
  rl_client* client = open_patient();
  pthread_t takers[TAKER_COUNT];
  size_t k;
  int i;
  pool.queue = rl_queue_new(NULL);
  CHECK_INT(RL_OK, rl_queue_drive(pool.queue, client));
  for (k = 0; k < TAKER_COUNT; ++k) {
    REQUIRE(pthread_create(&takers[k], NULL, take_tags, &pool) == 0);
  }
  for (i = 1; i <= TAG_COUNT; ++i) {
    requests[i] = start(client, pool.queue, i);
    if (i % 100 == 0) EVENTUALLY(atomic_load(&pool.taken_count) == i, WAIT_MS);
  }
  for (k = 0; k < TAKER_COUNT; ++k) CHECK_INT(RL_OK, rl_queue_post(pool.queue, -1));
  for (k = 0; k < TAKER_COUNT; ++k) pthread_join(takers[k], NULL);
  for (i = 1; i <= TAG_COUNT; ++i) {
    CHECK_INT(RL_OK, rl_request_status(requests[i]));
    rl_request_free(requests[i]);
  }
  rl_queue_free(pool.queue);
  rl_client_close(client);
}

/* ---- nobody looks ---------------------------------------------------------------------------- */

/* Three leases long. The library's thread reads before it finds that something is too late, with a
   command time limit below the time between renewals, and with one above a lease. */
static void a_late_look_loses_nothing(void) {
  static const char* const limits[] = {"command_timeout=1s", "command_timeout=5s"};
  enum { COUNT = 2, TTL_MS = 4500 };
  rl_client* clients[COUNT];
  rl_queue* queues[COUNT];
  rl_lease* leases[COUNT];
  rl_request* requests[COUNT];
  rl_acquire_options* options = rl_acquire_options_new();
  int i;
  rl_acquire_options_set_ttl_ms(options, TTL_MS); /* Shorter ones measure a busy machine. */
  for (i = 0; i < COUNT; ++i) {
    char name[32];
    const int size = snprintf(name, sizeof name, "driven-late-%d", i);
    clients[i] = client_with(limits[i]);
    queues[i] = rl_queue_new(NULL);
    CHECK_INT(RL_OK, rl_queue_drive(queues[i], clients[i]));
    leases[i] = rl_acquire(clients[i], name, (size_t)size, WAIT_MS, options, NULL);
    requests[i] = start(clients[i], queues[i], 5 + i);
    EVENTUALLY(rl_request_status(requests[i]) == RL_OK, WAIT_MS);
  }
  CHECK_INT(RL_LEASE_HELD, rl_lease_wait_lost(leases[0], 3 * TTL_MS));
  for (i = 0; i < COUNT; ++i) {
    CHECK_INT(RL_LEASE_HELD, rl_lease_state(leases[i]));
    CHECK_INT(5 + i, rl_queue_next(queues[i], WAIT_MS));
    finish(queues[i], requests[i]);
    CHECK_INT(RL_OK, rl_release(leases[i], NULL));
    rl_lease_free(leases[i]);
    rl_queue_free(queues[i]);
    rl_client_close(clients[i]);
  }
  rl_acquire_options_free(options);
}

static void a_client_ends_in_the_thread_that_drives(void) {
  rl_client* client = open_patient();
  rl_queue* queue = rl_queue_new(NULL);
  rl_lease* lease;
  CHECK_INT(RL_OK, rl_queue_drive(queue, client));
  lease = rl_acquire(client, TEXT("driven-end"), WAIT_MS, NULL, NULL);
  rl_client_close(client); /* It waits for the release. */
  CHECK_INT(RL_LEASE_RELEASED, rl_lease_state(lease));
  CHECK_INT(0, server_number("EXISTS", "driven-end", NULL));
  CHECK_INT(0, rl_queue_next(queue, 0));
  rl_lease_free(lease);
  rl_queue_free(queue);
}

/* ---- one client, one queue ------------------------------------------------------------------- */

/* Start a request whose answer stays unread until `driving` reads it. The library may read for
   reasons of its own, such as a connection that was just made: then another one. */
static rl_request* start_unread(rl_client* client, rl_queue* queue, int* number) {
  int i;
  for (i = 0; i < 100; ++i) {
    rl_request* request = start(client, queue, ++*number);
    if (rl_queue_next(queue, 50) == 0) return request;
    rl_request_free(request);
  }
  CHECK(!"an answer stays unread");
  return NULL;
}

static void the_library_reads_again(void) {
  rl_client* client = open_patient();
  rl_queue* queue = rl_queue_new(NULL);
  rl_queue* driving = rl_queue_new(NULL);
  rl_request* request;
  int number = 0;
  CHECK_INT(RL_OK, rl_queue_drive(driving, client));
  request = start_unread(client, queue, &number);
  CHECK_INT(RL_OK, rl_queue_drive(driving, NULL));
  CHECK_INT(number, rl_queue_next(queue, WAIT_MS));
  rl_request_free(request);

  CHECK_INT(RL_OK, rl_queue_drive(driving, client));
  request = start_unread(client, queue, &number);
  rl_queue_free(driving);
  CHECK_INT(number, rl_queue_next(queue, WAIT_MS));
  rl_request_free(request);
  rl_queue_free(queue);
  rl_client_close(client);
}

static void a_queue_drives_one_client(void) {
  rl_client* first = open_patient();
  rl_client* second = open_patient();
  rl_queue* queue = rl_queue_new(NULL);
  rl_queue* other = rl_queue_new(NULL);
  rl_request* request;
  CHECK_INT(RL_OK, rl_queue_drive(queue, first));
  CHECK_INT(RL_OK, rl_queue_drive(queue, first));
  CHECK_INT(RL_E_INVALID, rl_queue_drive(queue, second));
  CHECK_INT(RL_OK, rl_queue_drive(other, first)); /* In the place of the other one. */
  request = start(first, other, 1);
  CHECK_INT(1, rl_queue_next(other, WAIT_MS));
  finish(other, request);
  CHECK_INT(RL_OK, rl_queue_drive(queue, second));
  rl_client_close(second);
  CHECK_INT(RL_OK, rl_queue_drive(queue, first));
  request = start(first, queue, 2);
  CHECK_INT(2, rl_queue_next(queue, WAIT_MS));
  finish(queue, request);
  rl_client_shutdown(first);
  CHECK_INT(RL_OK, rl_queue_drive(queue, first)); /* There is nothing to read any more. */
  CHECK_INT(0, rl_queue_next(queue, 0));
  rl_client_close(first);
  rl_queue_free(queue);
  rl_queue_free(other);
}

static const struct test tests[] = {
    {"no_thread_is_woken_for_an_answer", no_thread_is_woken_for_an_answer},
    {"readable_while_there_are_tags", readable_while_there_are_tags},
    {"each_tag_goes_to_one_of_many_takers", each_tag_goes_to_one_of_many_takers},
    {"a_late_look_loses_nothing", a_late_look_loses_nothing},
    {"a_client_ends_in_the_thread_that_drives", a_client_ends_in_the_thread_that_drives},
    {"the_library_reads_again", the_library_reads_again},
    {"a_queue_drives_one_client", a_queue_drives_one_client},
};

int main(int argc, char** argv) {
  server_url();
  return run_tests(tests, TEST_COUNT(tests), argc, argv);
}
