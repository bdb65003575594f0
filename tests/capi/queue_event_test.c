/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Goal: an event of a queue says what it tells of, and never names a handle that was freed.
 * Method: a real server; each kind of event; handles freed before their events are taken, by one
 * thread and by threads that free while another one takes.
 */
#include <poll.h>
#include <pthread.h>

#include "calls.h"
#include "harness.h"
#include "redlatch/redlatch.h"
#include "server.h"

enum { WAIT_MS = 30000, CALLER_COUNT = 64, ROUND_COUNT = 50 };

static void check_event(rl_queue* queue, int64_t tag, int32_t kind, int32_t status,
                        const void* handle) {
  rl_event event;
  CHECK_INT(kind, rl_queue_next_event(queue, WAIT_MS, &event));
  CHECK_INT(tag, event.tag);
  CHECK_INT(kind, event.kind);
  CHECK_INT(status, event.status);
  CHECK(event.handle == handle);
}

static void check_none(rl_queue* queue, int64_t wait_ms) {
  rl_event event = {1, 2, 3, queue};
  CHECK_INT(0, rl_queue_next_event(queue, wait_ms, &event));
  CHECK(event.tag == 0 && event.kind == 0 && event.status == 0 && event.handle == NULL);
}

static void each_kind_says_what_it_tells_of(void) {
  rl_client* client = server_client();
  rl_queue* queue = rl_queue_new(NULL);
  rl_request* request = rl_acquire_start(client, TEXT("kinds"), WAIT_MS, NULL);
  rl_client* other = server_client();
  rl_request* busy;
  rl_request* bad;
  rl_request* connecting;
  rl_lease* lease;
  check_none(queue, 0);
  CHECK_INT(RL_OK, rl_request_watch(request, queue, 1));
  check_event(queue, 1, RL_EVENT_REQUEST, RL_OK, request);
  lease = rl_request_take_lease(request);
  CHECK_INT(RL_OK, rl_lease_watch(lease, queue, 2));
  busy = rl_acquire_start(client, TEXT("kinds"), 0, NULL);
  CHECK_INT(RL_OK, rl_request_watch(busy, queue, 3));
  check_event(queue, 3, RL_EVENT_REQUEST, RL_BUSY, busy);
  CHECK_INT(RL_OK, rl_release(lease, NULL));
  check_event(queue, 2, RL_EVENT_LEASE, RL_LEASE_RELEASED, lease);
  CHECK_INT(RL_OK, rl_queue_post(queue, -9));
  check_event(queue, -9, RL_EVENT_POSTED, RL_OK, NULL);
  /* Finished when it was made. */
  bad = rl_acquire_start(NULL, TEXT("kinds"), 0, NULL);
  CHECK_INT(RL_OK, rl_request_watch(bad, queue, 4));
  check_event(queue, 4, RL_EVENT_REQUEST, RL_E_INVALID, bad);
  CHECK_INT(RL_OK, rl_client_credentials_watch(other, queue, 5));
  connecting = rl_client_connect_start(other, WAIT_MS);
  check_event(queue, 5, RL_EVENT_CREDENTIALS, RL_OK, other);
  check_none(queue, 0);
  rl_request_free(connecting);
  rl_client_close(other);
  rl_request_free(request);
  rl_request_free(busy);
  rl_request_free(bad);
  rl_lease_free(lease);
  rl_queue_free(queue);
  rl_client_close(client);
}

static void a_lost_lease_and_the_log(void) {
  rl_client* client = server_client();
  rl_queue* queue = rl_queue_new(NULL);
  rl_acquire_options* options = rl_acquire_options_new();
  rl_lease* lease;
  rl_event first, second;
  CHECK_INT(RL_OK, rl_acquire_options_set(options, TEXT("max_hold"), TEXT("1s"), NULL));
  CHECK_INT(RL_OK, rl_client_connect(client, WAIT_MS, NULL));
  empty_log(client);
  CHECK_INT(RL_OK, rl_client_log_watch(client, RL_LOG_ERROR, queue, 1));
  lease = rl_acquire(client, TEXT("lost"), WAIT_MS, options, NULL);
  CHECK_INT(RL_OK, rl_lease_watch(lease, queue, 2));
  CHECK(rl_queue_next_event(queue, WAIT_MS, &first) > 0);
  CHECK(rl_queue_next_event(queue, WAIT_MS, &second) > 0);
  if (first.kind == RL_EVENT_LEASE) {
    const rl_event before = first;
    first = second;
    second = before;
  }
  CHECK(first.kind == RL_EVENT_LOG && first.tag == 1 && first.handle == client);
  CHECK(second.kind == RL_EVENT_LEASE && second.tag == 2 && second.handle == lease);
  CHECK_INT(RL_LEASE_LOST, second.status);
  rl_lease_free(lease);
  rl_acquire_options_free(options);
  rl_queue_free(queue);
  rl_client_close(client);
}

static void what_was_freed_is_not_named(void) {
  rl_client* client = server_client();
  rl_client* other = server_client();
  rl_queue* queue = rl_queue_new(NULL);
  rl_request* request = rl_acquire_start(client, TEXT("freed"), WAIT_MS, NULL);
  struct pollfd polled = {-1, POLLIN, 0};
  rl_lease* lease;
  CHECK_INT(RL_OK, rl_request_wait(request, WAIT_MS));
  CHECK_INT(RL_OK, rl_request_watch(request, queue, 1));
  lease = rl_request_take_lease(request);
  rl_request_free(request);
  CHECK_INT(RL_OK, rl_release(lease, NULL));
  CHECK_INT(RL_OK, rl_lease_watch(lease, queue, 2));
  rl_lease_free(lease);
  check_event(queue, 1, RL_EVENT_REQUEST, RL_OK, NULL);
  check_event(queue, 2, RL_EVENT_LEASE, RL_LEASE_RELEASED, NULL);
  CHECK_INT(RL_OK, rl_client_credentials_watch(other, queue, 3));
  request = rl_client_connect_start(other, WAIT_MS);
  polled.fd = rl_queue_fd(queue);
  CHECK_INT(1, poll(&polled, 1, WAIT_MS));
  rl_client_close(other);
  check_event(queue, 3, RL_EVENT_CREDENTIALS, RL_OK, NULL);
  rl_request_free(request);
  /* Pending: it has posted nothing. */
  lease = rl_acquire(client, TEXT("freed"), WAIT_MS, NULL, NULL);
  request = rl_acquire_start(client, TEXT("freed"), WAIT_MS, NULL);
  CHECK_INT(RL_OK, rl_request_watch(request, queue, 4));
  rl_request_free(request);
  give_back(lease);
  check_none(queue, 50);
  rl_queue_free(queue);
  rl_client_close(client);
}

static void a_line_of_a_client_that_was_closed(void) {
  rl_client* client = server_client();
  rl_queue* queue = rl_queue_new(NULL);
  rl_acquire_options* options = rl_acquire_options_new();
  struct pollfd polled = {rl_queue_fd(queue), POLLIN, 0};
  rl_lease* lease;
  CHECK_INT(RL_OK, rl_acquire_options_set(options, TEXT("max_hold"), TEXT("1s"), NULL));
  CHECK_INT(RL_OK, rl_client_connect(client, WAIT_MS, NULL));
  empty_log(client);
  CHECK_INT(RL_OK, rl_client_log_watch(client, RL_LOG_ERROR, queue, 1));
  lease = rl_acquire(client, TEXT("line"), WAIT_MS, options, NULL);
  CHECK_INT(1, poll(&polled, 1, WAIT_MS));
  rl_client_close(client);
  check_event(queue, 1, RL_EVENT_LOG, RL_OK, NULL);
  rl_lease_free(lease);
  rl_acquire_options_free(options);
  rl_queue_free(queue);
}

static void a_bad_argument_takes_nothing(void) {
  rl_queue* queue = rl_queue_new(NULL);
  rl_event event = {1, 2, 3, queue};
  CHECK_INT(RL_OK, rl_queue_post(queue, 1));
  CHECK_INT(RL_E_INVALID, rl_queue_next_event(queue, -1, NULL));
  CHECK_INT(RL_E_INVALID, rl_queue_next_event(queue, -2, &event));
  CHECK(event.tag == 0 && event.kind == 0);
  CHECK_INT(RL_E_INVALID, rl_queue_next_event(NULL, -1, &event));
  CHECK_INT(1, rl_queue_next(queue, 0));
  rl_queue_free(queue);
}

/* ---- many callers ---------------------------------------------------------------------------- */

struct caller {
  rl_client* client;
  rl_queue* queue;
  int number;
};

/* The taker has the handle from the event alone, and frees it. Every second request is freed here,
   at once, as by a caller that has given up. */
static void* start_many(void* argument) {
  const struct caller* caller = (const struct caller*)argument;
  char name[32];
  int i;
  for (i = 0; i < ROUND_COUNT; ++i) {
    rl_request* request;
    snprintf(name, sizeof name, "many-%d-%d", caller->number, i);
    request = rl_acquire_start(caller->client, name, strlen(name), WAIT_MS, NULL);
    if (i % 2 == 0) {
      CHECK_INT(RL_OK, rl_request_watch(request, caller->queue, caller->number + 1));
    } else { /* For the sanitizers. */
      rl_request_watch(request, caller->queue, -caller->number - 1);
      rl_request_free(request);
    }
  }
  rl_queue_post(caller->queue, CALLER_COUNT + 1);
  return NULL;
}

static void a_taker_needs_no_table(void) {
  rl_client* client = server_client();
  rl_queue* queue = rl_queue_new(NULL);
  struct caller callers[CALLER_COUNT];
  pthread_t threads[CALLER_COUNT];
  int i, finished = 0, ended = 0;
  for (i = 0; i < CALLER_COUNT; ++i) {
    callers[i].client = client;
    callers[i].queue = queue;
    callers[i].number = i;
    pthread_create(&threads[i], NULL, start_many, &callers[i]);
  }
  while (finished < CALLER_COUNT * ROUND_COUNT / 2 || ended < CALLER_COUNT) {
    rl_event event;
    rl_lease* lease;
    if (!CHECK(rl_queue_next_event(queue, WAIT_MS, &event) > 0)) break;
    if (event.kind == RL_EVENT_POSTED) ended++;
    if (event.kind != RL_EVENT_REQUEST || event.tag < 0) continue;
    CHECK_INT(RL_OK, event.status);
    lease = rl_request_take_lease((rl_request*)event.handle);
    CHECK(lease != NULL);
    rl_lease_free(lease);
    rl_request_free((rl_request*)event.handle);
    finished++;
  }
  for (i = 0; i < CALLER_COUNT; ++i) pthread_join(threads[i], NULL);
  rl_queue_free(queue);
  rl_client_close(client);
}

static const struct test tests[] = {
    {"each_kind_says_what_it_tells_of", each_kind_says_what_it_tells_of},
    {"a_lost_lease_and_the_log", a_lost_lease_and_the_log},
    {"what_was_freed_is_not_named", what_was_freed_is_not_named},
    {"a_line_of_a_client_that_was_closed", a_line_of_a_client_that_was_closed},
    {"a_bad_argument_takes_nothing", a_bad_argument_takes_nothing},
    {"a_taker_needs_no_table", a_taker_needs_no_table},
};

int main(int argc, char** argv) {
  server_url();
  return run_tests(tests, TEST_COUNT(tests), argc, argv);
}
