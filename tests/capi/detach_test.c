/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Goal: what is freed, closed or called beside a detach does not undo it, and buffers have edges.
 * Method: a server that is stopped while a detach is under way, and threads that detach one lease.
 * Each status is in lock_client_attaching_test.cc, and what it means in cases/detach.case.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "calls.h"
#include "harness.h"
#include "redlatch/redlatch.h"
#include "server.h"

enum { TOKEN_SIZE = 33, THREAD_COUNT = 8, ROUND_COUNT = 20 };

static rl_client* open_client(void) {
  return client_with("command_timeout=500ms&connect_timeout=500ms");
}

static rl_lease* acquire(rl_client* client, const char* name) {
  return rl_acquire(client, name, strlen(name), 0, NULL, NULL);
}

/* ---- buffers --------------------------------------------------------------------------------- */

static void buffers(void) {
  rl_client* client = open_client();
  char token[TOKEN_SIZE], buffer[TOKEN_SIZE + 30];
  static const size_t sizes[] = {TOKEN_SIZE, TOKEN_SIZE + 30};
  size_t i;
  for (i = 0; i < TEST_COUNT(sizes); ++i) {
    rl_lease* lease = acquire(client, "sizes");
    REQUIRE(lease != NULL);
    rl_lease_token(lease, token, sizeof token);
    memset(buffer, 'x', sizeof buffer);
    CHECK_INT(RL_E_INVALID, rl_lease_detach(lease, buffer, TOKEN_SIZE - 1, NULL));
    CHECK_INT(0, buffer[0]);
    CHECK_INT(RL_LEASE_HELD, rl_lease_state(lease));
    memset(buffer, 'x', sizeof buffer);
    CHECK_INT(RL_OK, rl_lease_detach(lease, buffer, sizes[i], NULL));
    CHECK(strcmp(token, buffer) == 0);
    CHECK(sizes[i] == sizeof buffer || buffer[TOKEN_SIZE] == 'x');
    rl_lease_free(lease);
    check_attachable(client, "sizes", token);
  }
  rl_client_close(client);
}

/* ---- requests -------------------------------------------------------------------------------- */

static void a_queue_hears_of_it(void) {
  char token[TOKEN_SIZE];
  rl_client* client = open_client();
  rl_queue* queue = rl_queue_new(NULL);
  rl_lease* lease = acquire(client, "queued");
  rl_request* request;
  int64_t tags = 0;
  int i;
  REQUIRE(lease != NULL && queue != NULL);
  CHECK_INT(RL_OK, rl_lease_watch(lease, queue, 1));
  request = rl_lease_detach_start(lease);
  REQUIRE(request != NULL);
  CHECK_INT(RL_OK, rl_request_watch(request, queue, 2));
  for (i = 0; i < 2; ++i) tags += rl_queue_next(queue, 10000);
  CHECK_INT(3, tags);
  CHECK_INT(RL_OK, rl_request_status(request));
  CHECK(rl_request_take_lease(request) == NULL);
  CHECK_INT(RL_LEASE_DETACHED, rl_lease_state(lease));
  rl_request_free(request);
  rl_lease_token(lease, token, sizeof token);
  rl_lease_free(lease);
  check_attachable(client, "queued", token);
  rl_queue_free(queue);
  rl_client_close(client);
}

/* What is freed or closed behind a detach that is under way must not release the lock. */
static void what_is_freed_behind_it_releases_nothing(void) {
  enum { FREE_LEASE, FREE_REQUEST, CANCEL, CLOSE, WAY_COUNT };
  char token[TOKEN_SIZE];
  int way;
  for (way = 0; way < WAY_COUNT; ++way) {
    rl_client* client = open_client();
    rl_client* other = open_client();
    rl_lease* lease = acquire(client, "freed");
    rl_request* request;
    REQUIRE(lease != NULL);
    rl_lease_token(lease, token, sizeof token);
    kill(server_pid(), SIGSTOP);
    request = rl_lease_detach_start(lease);
    CHECK_INT(RL_PENDING, rl_request_status(request));
    CHECK_INT(RL_LEASE_DETACHED, rl_lease_state(lease));
    if (way == CANCEL) CHECK_INT(RL_CANCELLED, rl_request_cancel(request));
    if (way == FREE_REQUEST) rl_request_free(request), request = NULL;
    if (way == FREE_LEASE) rl_lease_free(lease), lease = NULL;
    if (way == CLOSE) rl_client_close(client), client = NULL;
    kill(server_pid(), SIGCONT);
    if (way == FREE_LEASE) CHECK_INT(RL_OK, rl_request_wait(request, 10000));
    rl_request_free(request);
    rl_lease_free(lease);
    rl_client_close(client);
    check_attachable(other, "freed", token);
    rl_client_close(other);
  }
}

/* ---- many threads ---------------------------------------------------------------------------- */

struct race {
  pthread_t thread;
  pthread_barrier_t* barrier;
  rl_lease* lease;
  rl_status status;
};

static void* detach(void* argument) {
  struct race* self = (struct race*)argument;
  char token[TOKEN_SIZE];
  pthread_barrier_wait(self->barrier);
  self->status = rl_lease_detach(self->lease, token, sizeof token, NULL);
  CHECK((token[0] != '\0') == (self->status == RL_OK));
  return NULL;
}

static void one_of_many_detaches_is_answered(void) {
  struct race all[THREAD_COUNT];
  char token[TOKEN_SIZE];
  rl_client* client = open_client();
  int i, round;
  for (round = 0; round < ROUND_COUNT; ++round) {
    rl_lease* lease = acquire(client, "raced");
    pthread_barrier_t barrier;
    int won = 0;
    REQUIRE(lease != NULL);
    rl_lease_token(lease, token, sizeof token);
    pthread_barrier_init(&barrier, NULL, THREAD_COUNT);
    for (i = 0; i < THREAD_COUNT; ++i) {
      all[i].lease = lease;
      all[i].barrier = &barrier;
      /* Without it the others would wait at the barrier. */
      if (pthread_create(&all[i].thread, NULL, detach, &all[i]) != 0) abort();
    }
    for (i = 0; i < THREAD_COUNT; ++i) {
      pthread_join(all[i].thread, NULL);
      won += all[i].status == RL_OK;
      if (all[i].status != RL_OK) CHECK_INT(RL_E_NOT_HELD, all[i].status);
    }
    CHECK_INT(1, won);
    pthread_barrier_destroy(&barrier);
    rl_lease_free(lease);
    check_attachable(client, "raced", token);
  }
  rl_client_close(client);
}

static const struct test tests[] = {
    {"buffers", buffers},
    {"a_queue_hears_of_it", a_queue_hears_of_it},
    {"what_is_freed_behind_it_releases_nothing", what_is_freed_behind_it_releases_nothing},
    {"one_of_many_detaches_is_answered", one_of_many_detaches_is_answered},
};

int main(int argc, char** argv) { return run_tests(tests, TEST_COUNT(tests), argc, argv); }
