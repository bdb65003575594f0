/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Goal: pthread_cancel() of a thread inside a call takes effect after the call, which has its
 * result; the process lives, and client and lock are as after any call. Method: a thread that is
 * cancelled already makes one call of each kind, and threads are cancelled while they wait.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "harness.h"
#include "redlatch/redlatch.h"
#include "server.h"

enum { WAIT_MS = 20000, WAITER_COUNT = 4 };

/* With RESP2 the library's thread reads a second connection. */
static const char* protocol = "protocol=3";

/* What a thread did before it ended. */
struct victim {
  pthread_t thread;
  rl_client* client;
  rl_lease* lease;
  rl_queue* queue;
  int64_t result;
  atomic_int is_ready; /* it is about to make the call that it is cancelled in */
  atomic_int is_back;  /* the call has returned */
};

static void begin(struct victim* victim, void* (*body)(void*)) {
  if (!CHECK(pthread_create(&victim->thread, NULL, body, victim) == 0)) abort();
}

static void join_cancelled(struct victim* victim) {
  void* result = NULL;
  CHECK_INT(0, pthread_join(victim->thread, &result));
  CHECK(result == PTHREAD_CANCELED);
  CHECK(atomic_load(&victim->is_back));
}

static void* end_cancelled(struct victim* victim) {
  atomic_store(&victim->is_back, 1);
  pthread_testcancel();
  return NULL;
}

/* ---- cancelled before ------------------------------------------------------------------------ */

static void take_turns_with_a_lease(rl_client* client) {
  char token[RL_TOKEN_BYTES + 1];
  rl_lease* lease = rl_acquire(client, TEXT("turns"), 0, NULL, NULL);
  rl_request* request = rl_acquire_start(client, TEXT("turns"), WAIT_MS, NULL);
  rl_info* info = rl_inspect(client, TEXT("turns"), NULL);
  rl_list* list = rl_list_open(client, TEXT("tur*"), NULL);
  int64_t fence = rl_lease_fence(lease);
  CHECK_INT(RL_OK, rl_extend(lease, 30000, NULL));
  CHECK_INT(RL_OK, rl_lease_check(lease, NULL));
  CHECK_INT(RL_LEASE_HELD, rl_lease_wait_lost(lease, 5));
  CHECK_INT(RL_PENDING, rl_request_wait(request, 5));
  CHECK_INT(RL_STATE_HELD, rl_info_number(info, RL_PART_LOCK, 0, RL_FIELD_STATE));
  CHECK_INT(RL_OK, rl_list_next(list, NULL));
  CHECK_INT(RL_OK, rl_lease_detach(lease, token, sizeof token, NULL));
  rl_lease_free(lease);
  lease = rl_lease_attach(client, TEXT("turns"), token, RL_TOKEN_BYTES, fence, NULL, NULL);
  CHECK_INT(RL_OK, rl_release(lease, NULL));
  rl_lease_free(lease);
  CHECK_INT(RL_OK, rl_request_wait(request, WAIT_MS));
  rl_list_free(list);
  rl_info_free(info);
  rl_request_free(request); /* gives the lease back */
  lease = rl_rw_acquire_read(client, TEXT("turns rw"), WAIT_MS, NULL, NULL);
  CHECK_INT(RL_OK, rl_rw_upgrade(lease, WAIT_MS, NULL));
  CHECK_INT(RL_OK, rl_rw_downgrade(lease, NULL));
  CHECK_INT(RL_OK, rl_force_release_any(client, TEXT("turns rw"), NULL));
  rl_lease_free(lease);
}

static void take_turns_with_a_queue(rl_client* client) {
  rl_queue* queue = rl_queue_new(NULL);
  rl_request* request;
  CHECK_INT(0, rl_queue_next(queue, 5));
  CHECK_INT(RL_OK, rl_queue_post(queue, 1));
  CHECK_INT(1, rl_queue_next(queue, -1));
  CHECK_INT(RL_OK, rl_queue_drive(queue, client));
  request = rl_acquire_start(client, TEXT("queued"), 0, NULL);
  CHECK_INT(RL_OK, rl_request_watch(request, queue, 2));
  CHECK_INT(2, rl_queue_next(queue, WAIT_MS));
  CHECK_INT(RL_OK, rl_queue_drive(queue, NULL));
  CHECK_INT(RL_OK, rl_client_log_watch(client, RL_LOG_INFO, queue, 3));
  CHECK_INT(RL_OK, rl_client_credentials_watch(client, queue, 4));
  CHECK_INT(RL_OK, rl_client_credentials_watch(client, NULL, 0));
  CHECK_INT(RL_OK, rl_request_cancel(request));
  rl_request_free(request);
  rl_queue_free(queue);
}

/* A cancellation that is pending acts at the first cancellation point. Calls that are not of the
   library would be some. */
static void* make_each_call(void* argument) {
  struct victim* self = (struct victim*)argument;
  rl_client_options* options = rl_client_options_new();
  rl_error* err = rl_error_new();
  rl_client* client;
  rl_lease* lease;
  rl_info* info;
  pthread_cancel(pthread_self());
  CHECK(rl_client_options_set(options, TEXT("password_file"), TEXT("/none"), err) < 0);
  CHECK_INT(RL_OK, rl_client_options_set_from_env(options, err));
  client = server_client();
  CHECK_INT(RL_OK, rl_client_connect(client, WAIT_MS, err));
  take_turns_with_a_lease(client);
  take_turns_with_a_queue(client);
  info = rl_client_check(client, WAIT_MS, err);
  CHECK(info != NULL);
  rl_info_free(info);
  info = rl_client_info(client, err);
  CHECK(info != NULL);
  rl_info_free(info);
  empty_log(client);
  rl_client_close(client);
  client = server_client();
  lease = rl_acquire(client, TEXT("last"), WAIT_MS, NULL, err);
  rl_client_close(client);
  rl_lease_free(lease); /* the last handle of its client */
  rl_client_options_free(options);
  rl_error_free(err);
  return end_cancelled(self);
}

static void no_call_is_a_cancellation_point(void) {
  struct victim victim;
  memset(&victim, 0, sizeof victim);
  rl_client_close(client_with(protocol)); /* starts the server, which this thread may */
  begin(&victim, make_each_call);
  join_cancelled(&victim);
}

/* ---- cancelled while they wait --------------------------------------------------------------- */

static void give_back_held(void* argument) {
  struct victim* self = (struct victim*)argument;
  if (CHECK(self->lease != NULL)) give_back(self->lease);
}

static void* wait_for_the_lock(void* argument) {
  struct victim* self = (struct victim*)argument;
  pthread_cleanup_push(give_back_held, self);
  self->lease = rl_acquire(self->client, TEXT("wanted"), -1, NULL, NULL);
  (void)end_cancelled(self);
  pthread_cleanup_pop(1);
  return NULL;
}

/* The first of them watches the socket, the others sleep. Each gets the lock, and gives it back. */
static void waiters_are_cancelled(void) {
  struct victim victims[WAITER_COUNT];
  rl_client* holder = client_with(protocol);
  rl_client* client = client_with(protocol);
  rl_lease* lease = rl_acquire(holder, TEXT("wanted"), 0, NULL, NULL);
  size_t i;
  memset(victims, 0, sizeof victims);
  for (i = 0; i < WAITER_COUNT; ++i) {
    victims[i].client = client;
    begin(&victims[i], wait_for_the_lock);
  }
  EVENTUALLY(waiting_count(holder, "wanted") > 0, WAIT_MS);
  for (i = 0; i < WAITER_COUNT; ++i) pthread_cancel(victims[i].thread);
  for (i = 0; i < WAITER_COUNT; ++i) CHECK(!atomic_load(&victims[i].is_back));
  give_back(lease);
  for (i = 0; i < WAITER_COUNT; ++i) join_cancelled(&victims[i]);
  lease = rl_acquire(client, TEXT("wanted"), WAIT_MS, NULL, NULL);
  if (CHECK(lease != NULL)) give_back(lease);
  rl_client_close(client);
  rl_client_close(holder);
}

static void waiters_are_cancelled_with_resp2(void) {
  protocol = "protocol=2";
  waiters_are_cancelled();
  protocol = "protocol=3";
}

static void* release(void* argument) {
  struct victim* self = (struct victim*)argument;
  atomic_store(&self->is_ready, 1);
  self->result = rl_release(self->lease, NULL);
  return end_cancelled(self);
}

static void* wait_for_a_tag(void* argument) {
  struct victim* self = (struct victim*)argument;
  atomic_store(&self->is_ready, 1);
  self->result = rl_queue_next(self->queue, -1);
  return end_cancelled(self);
}

static void* wait_for_the_end(void* argument) {
  struct victim* self = (struct victim*)argument;
  atomic_store(&self->is_ready, 1);
  self->result = rl_lease_wait_lost(self->lease, -1);
  return end_cancelled(self);
}

static void* close_client(void* argument) {
  struct victim* self = (struct victim*)argument;
  atomic_store(&self->is_ready, 1);
  rl_client_close(self->client);
  return end_cancelled(self);
}

static void begin_and_cancel(struct victim* victim, void* (*body)(void*)) {
  begin(victim, body);
  EVENTUALLY(atomic_load(&victim->is_ready), WAIT_MS);
  sleep_ms(20); /* it most likely waits by now; if not, the call begins with a cancelled thread */
  pthread_cancel(victim->thread);
}

static void other_calls_are_cancelled(void) {
  struct victim releases, waits, watches, closes;
  rl_client* client = client_with(protocol);
  memset(&releases, 0, sizeof releases);
  memset(&waits, 0, sizeof waits);
  memset(&watches, 0, sizeof watches);
  memset(&closes, 0, sizeof closes);
  releases.lease = rl_acquire(client, TEXT("released"), 0, NULL, NULL);
  watches.lease = rl_acquire(client, TEXT("watched"), 0, NULL, NULL);
  waits.queue = rl_queue_new(NULL);
  closes.client = client_with(protocol);
  closes.lease = rl_acquire(closes.client, TEXT("closed"), 0, NULL, NULL);
  begin_and_cancel(&waits, wait_for_a_tag);
  begin_and_cancel(&watches, wait_for_the_end);
  kill(server_pid(), SIGSTOP);
  begin_and_cancel(&releases, release);
  begin_and_cancel(&closes, close_client);
  kill(server_pid(), SIGCONT);
  join_cancelled(&releases);
  join_cancelled(&closes);
  CHECK_INT(RL_OK, releases.result);
  rl_lease_free(releases.lease);
  rl_lease_free(closes.lease);
  CHECK_INT(RL_OK, rl_queue_post(waits.queue, 7));
  join_cancelled(&waits);
  CHECK_INT(7, waits.result);
  rl_queue_free(waits.queue);
  CHECK_INT(RL_OK, rl_release(watches.lease, NULL));
  join_cancelled(&watches);
  CHECK_INT(RL_LEASE_RELEASED, watches.result);
  rl_lease_free(watches.lease);
  rl_client_close(client);
}

static const struct test tests[] = {
    {"no_call_is_a_cancellation_point", no_call_is_a_cancellation_point},
    {"waiters_are_cancelled", waiters_are_cancelled},
    {"waiters_are_cancelled_with_resp2", waiters_are_cancelled_with_resp2},
    {"other_calls_are_cancelled", other_calls_are_cancelled},
};

int main(int argc, char** argv) { return run_tests(tests, TEST_COUNT(tests), argc, argv); }
