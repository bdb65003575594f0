/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Goal: a lease that is detached is held by nobody here, and by one attach at most elsewhere,
 * whatever the server answers and however many threads ask. Method: each status in turn, then races
 * of threads for one token.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "calls.h"
#include "harness.h"
#include "redlatch/redlatch.h"
#include "server.h"

enum { TOKEN_SIZE = 33, THREAD_COUNT = 64, CLIENT_COUNT = 4, ROUND_COUNT = 20 };

static rl_client* open_client(void) {
  char url[256];
  snprintf(url, sizeof url, "%s?command_timeout=500ms&connect_timeout=500ms", server_url());
  return rl_client_open(url, strlen(url), NULL, NULL);
}

static rl_lease* acquire(rl_client* client, const char* name) {
  return rl_acquire(client, name, strlen(name), 0, NULL, NULL);
}

static rl_status status_of_attach(rl_client* client, const char* name, const char* token) {
  rl_error* err = rl_error_new();
  rl_lease* lease = rl_lease_attach(client, name, strlen(name), token, strlen(token), 0, NULL, err);
  const rl_status status = rl_error_status(err);
  CHECK((lease != NULL) == (status == RL_OK));
  rl_lease_free(lease);
  rl_error_free(err);
  return status;
}

/* What was on the wire counts once the server has read it. */
static void check_attachable(rl_client* client, const char* name, const char* token) {
  const int64_t end_ms = now_ms() + 10000;
  rl_status status = status_of_attach(client, name, token);
  while (status == RL_E_NOT_HELD && now_ms() < end_ms)
    status = status_of_attach(client, name, token);
  CHECK_INT(RL_OK, status);
}

static int64_t exists(const char* name) { return server_number("EXISTS", name, NULL); }

/* ---- each status ----------------------------------------------------------------------------- */

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
    CHECK_INT(RL_E_INVALID, rl_lease_detach(lease, buffer, 0, NULL));
    CHECK_INT(RL_E_INVALID, rl_lease_detach(lease, NULL, TOKEN_SIZE, NULL));
    CHECK_INT(RL_LEASE_HELD, rl_lease_state(lease));
    memset(buffer, 'x', sizeof buffer);
    CHECK_INT(RL_OK, rl_lease_detach(lease, buffer, sizes[i], NULL));
    CHECK(strcmp(token, buffer) == 0);
    CHECK(sizes[i] == sizeof buffer || buffer[TOKEN_SIZE] == 'x');
    rl_lease_free(lease);
    CHECK_INT(RL_OK, status_of_attach(client, "sizes", token));
    CHECK_INT(0, exists("sizes"));
  }
  rl_client_close(client);
}

static void what_has_ended_cannot_be_detached(void) {
  rl_client* client = open_client();
  rl_lease* lease = acquire(client, "ended");
  rl_error* err = rl_error_new();
  char token[TOKEN_SIZE];
  REQUIRE(lease != NULL);
  CHECK_INT(RL_OK, rl_release(lease, NULL));
  token[0] = 'x';
  CHECK_INT(RL_E_NOT_HELD, rl_lease_detach(lease, token, sizeof token, err));
  CHECK_INT(0, token[0]);
  CHECK_HAS("ended", rl_error_message(err));
  rl_lease_free(lease);

  lease = acquire(client, "ended");
  CHECK_INT(RL_OK, rl_lease_detach(lease, NULL, 0, NULL));
  CHECK_INT(RL_LEASE_DETACHED, rl_lease_wait_lost(lease, -1));
  CHECK_INT(RL_E_NOT_HELD, rl_lease_detach(lease, token, sizeof token, err));
  CHECK_INT(0, token[0]);
  CHECK_INT(RL_E_NOT_HELD, rl_release(lease, NULL));
  CHECK_INT(RL_E_NOT_HELD, rl_lease_check(lease, NULL));
  rl_lease_token(lease, token, sizeof token);
  rl_lease_free(lease);
  CHECK_INT(1, exists("ended"));
  CHECK_INT(RL_OK, status_of_attach(client, "ended", token));

  lease = acquire(client, "ended");
  rl_client_shutdown(client);
  CHECK_INT(RL_E_CLOSED, rl_lease_detach(lease, token, sizeof token, err));
  CHECK_INT(0, exists("ended"));
  rl_lease_free(lease);
  rl_client_close(client);
  rl_error_free(err);
}

static void a_lost_lease_cannot_be_detached(void) {
  rl_client* client = open_client();
  rl_error* err = rl_error_new();
  char token[TOKEN_SIZE], known[TOKEN_SIZE];
  rl_acquire_options* options = rl_acquire_options_new();
  rl_lease* lease;
  rl_acquire_options_set_ttl_ms(options, 50);
  rl_acquire_options_set_renew(options, 0);
  lease = rl_acquire(client, TEXT("lost"), 0, options, NULL);
  rl_acquire_options_free(options);
  REQUIRE(lease != NULL);
  rl_lease_token(lease, known, sizeof known);
  CHECK_INT(RL_LEASE_LOST, rl_lease_wait_lost(lease, 10000));
  token[0] = 'x';
  CHECK_INT(RL_E_LOST, rl_lease_detach(lease, token, sizeof token, err));
  CHECK_INT(0, token[0]);
  CHECK_INT(RL_LEASE_LOST, rl_lease_state(lease));
  CHECK_INT(RL_E_NOT_HELD, status_of_attach(client, "lost", known));
  rl_lease_free(lease);

  /* The server knows before the client does. */
  lease = acquire(client, "taken");
  CHECK_INT(1, server_number("DEL", "taken", NULL));
  CHECK_INT(RL_E_LOST, rl_lease_detach(lease, token, sizeof token, err));
  CHECK_HAS("taken", rl_error_message(err));
  CHECK_INT(RL_LEASE_LOST, rl_lease_state(lease));
  rl_lease_free(lease);
  rl_error_free(err);
  rl_client_close(client);
}

static void refused_it_is_held_as_before(void) {
  char reply[256], token[TOKEN_SIZE];
  rl_client* client = open_client();
  rl_lease* lease = acquire(client, "refused");
  REQUIRE(lease != NULL);
  server_command(reply, sizeof reply, "ACL", "SETUSER", "default", "-hset", NULL);
  token[0] = 'x';
  CHECK_INT(RL_E_DENIED, rl_lease_detach(lease, token, sizeof token, NULL));
  CHECK_INT(0, token[0]);
  CHECK_INT(RL_LEASE_HELD, rl_lease_state(lease));
  CHECK_INT(RL_OK, rl_extend(lease, 20000, NULL));
  rl_lease_token(lease, token, sizeof token);
  CHECK_INT(RL_E_NOT_HELD, status_of_attach(client, "refused", token));
  server_command(reply, sizeof reply, "ACL", "SETUSER", "default", "+hset", NULL);
  CHECK_INT(RL_OK, rl_lease_detach(lease, token, sizeof token, NULL));
  CHECK_INT(RL_OK, status_of_attach(client, "refused", token));
  rl_lease_free(lease);
  rl_client_close(client);
}

static void unsent_it_is_held_as_before(void) {
  char token[TOKEN_SIZE];
  rl_client* client = open_client();
  rl_lease* lease = acquire(client, "unsent");
  rl_request* request;
  REQUIRE(lease != NULL);
  server_kill();
  /* Not the first call after the kill: that one may have been sent before the client noticed. */
  EVENTUALLY(rl_extend(lease, 30000, NULL) == RL_E_UNAVAILABLE, 10000);
  CHECK_INT(RL_E_UNAVAILABLE, rl_lease_detach(lease, token, sizeof token, NULL));
  CHECK_INT(0, token[0]);
  CHECK_INT(RL_LEASE_HELD, rl_lease_state(lease));
  request = rl_lease_detach_start(lease);
  CHECK_INT(RL_PENDING, rl_request_status(request));
  CHECK_INT(RL_CANCELLED, rl_request_cancel(request));
  CHECK_INT(RL_LEASE_HELD, rl_lease_state(lease));
  rl_request_free(request);
  rl_lease_free(lease);
  rl_client_close(client);
  server_url();
}

static void without_an_answer_it_is_not_held_any_more(void) {
  char token[TOKEN_SIZE];
  rl_client* client = open_client();
  rl_client* other = open_client();
  rl_lease* lease = acquire(client, "unanswered");
  REQUIRE(lease != NULL);
  CHECK_INT(RL_OK, rl_client_connect(other, 10000, NULL));
  kill(server_pid(), SIGSTOP);
  CHECK_INT(RL_E_OUTCOME_UNKNOWN, rl_lease_detach(lease, token, sizeof token, NULL));
  CHECK_INT(RL_LEASE_DETACHED, rl_lease_state(lease));
  CHECK_INT(TOKEN_SIZE - 1, strlen(token));
  CHECK_INT(RL_E_NOT_HELD, rl_release(lease, NULL));
  CHECK_INT(RL_E_NOT_HELD, rl_lease_detach(lease, NULL, 0, NULL));
  rl_lease_free(lease);
  kill(server_pid(), SIGCONT);
  check_attachable(other, "unanswered", token);
  CHECK_INT(0, exists("unanswered"));
  rl_client_close(other);
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
  CHECK_INT(RL_OK, status_of_attach(client, "queued", token));
  request = rl_lease_detach_start(NULL);
  CHECK_INT(RL_E_INVALID, rl_request_status(request));
  rl_request_free(request);
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
    CHECK_INT(0, exists("freed"));
    rl_client_close(other);
  }
}

static void a_waiting_upgrade_ends(void) {
  rl_client* client = open_client();
  rl_lease* lease = rl_rw_acquire_read(client, TEXT("upgrading"), 0, NULL, NULL);
  rl_lease* beside = rl_rw_acquire_read(client, TEXT("upgrading"), 0, NULL, NULL);
  rl_request* upgrade;
  char token[TOKEN_SIZE];
  REQUIRE(lease != NULL && beside != NULL);
  upgrade = rl_rw_upgrade_start(lease, -1);
  CHECK_INT(RL_PENDING, rl_request_wait(upgrade, 20));
  CHECK_INT(RL_OK, rl_lease_detach(lease, token, sizeof token, NULL));
  CHECK_INT(RL_E_NOT_HELD, rl_request_wait(upgrade, 10000));
  rl_request_free(upgrade);
  CHECK_INT(RL_OK, rl_release(beside, NULL));
  rl_lease_free(beside);
  rl_lease_free(lease);
  lease = rl_lease_attach(client, TEXT("upgrading"), token, strlen(token), 0, NULL, NULL);
  REQUIRE(lease != NULL);
  CHECK_INT(RL_MODE_READ, rl_lease_mode(lease));
  CHECK_INT(RL_OK, rl_rw_upgrade(lease, 0, NULL));
  CHECK_INT(RL_OK, rl_release(lease, NULL));
  rl_lease_free(lease);
  rl_client_close(client);
}

/* ---- many threads ---------------------------------------------------------------------------- */

struct race {
  pthread_t thread;
  pthread_barrier_t* barrier;
  rl_client* client;
  rl_lease* lease; /* What it detaches, or what it was granted. */
  const char* token;
  rl_status status;
};

static void* attach(void* argument) {
  struct race* self = (struct race*)argument;
  rl_error* err = rl_error_new();
  pthread_barrier_wait(self->barrier);
  self->lease =
      rl_lease_attach(self->client, TEXT("raced"), self->token, strlen(self->token), 0, NULL, err);
  self->status = rl_error_status(err);
  rl_error_free(err);
  return NULL;
}

static void* detach(void* argument) {
  struct race* self = (struct race*)argument;
  char token[TOKEN_SIZE];
  pthread_barrier_wait(self->barrier);
  self->status = rl_lease_detach(self->lease, token, sizeof token, NULL);
  CHECK((token[0] != '\0') == (self->status == RL_OK));
  return NULL;
}

/* @return the one of `count` that went well. All others must have been told that it is not held. */
static struct race* run_race(struct race* all, int count, void* (*work)(void*)) {
  pthread_barrier_t barrier;
  struct race* winner = NULL;
  int i, won = 0;
  pthread_barrier_init(&barrier, NULL, (unsigned)count);
  for (i = 0; i < count; ++i) {
    all[i].barrier = &barrier;
    /* Without it the others would wait at the barrier. */
    if (pthread_create(&all[i].thread, NULL, work, &all[i]) != 0) abort();
  }
  for (i = 0; i < count; ++i) {
    pthread_join(all[i].thread, NULL);
    if (all[i].status == RL_OK) winner = &all[i], ++won;
    if (all[i].status != RL_OK) CHECK_INT(RL_E_NOT_HELD, all[i].status);
  }
  CHECK_INT(1, won);
  pthread_barrier_destroy(&barrier);
  return winner;
}

static void one_of_many_attaches_wins(void) {
  static struct race all[THREAD_COUNT];
  rl_client* clients[CLIENT_COUNT];
  char token[TOKEN_SIZE];
  struct race* winner;
  rl_lease* lease;
  int i, round;
  for (i = 0; i < CLIENT_COUNT; ++i) clients[i] = open_client();
  lease = acquire(clients[0], "raced");
  REQUIRE(lease != NULL);
  for (round = 0; round < ROUND_COUNT; ++round) {
    CHECK_INT(RL_OK, rl_lease_detach(lease, token, sizeof token, NULL));
    rl_lease_free(lease);
    for (i = 0; i < THREAD_COUNT; ++i) {
      all[i].client = clients[i % CLIENT_COUNT];
      all[i].token = token;
    }
    winner = run_race(all, THREAD_COUNT, attach);
    REQUIRE(winner != NULL);
    lease = winner->lease;
    CHECK_INT(RL_E_NOT_HELD, status_of_attach(clients[0], "raced", token));
    CHECK_INT(RL_OK, rl_lease_check(lease, NULL));
  }
  CHECK_INT(RL_OK, rl_release(lease, NULL));
  rl_lease_free(lease);
  for (i = 0; i < CLIENT_COUNT; ++i) rl_client_close(clients[i]);
}

static void one_of_many_detaches_is_answered(void) {
  struct race all[8];
  char token[TOKEN_SIZE];
  rl_client* client = open_client();
  size_t i;
  int round;
  for (round = 0; round < ROUND_COUNT; ++round) {
    rl_lease* lease = acquire(client, "raced");
    REQUIRE(lease != NULL);
    rl_lease_token(lease, token, sizeof token);
    for (i = 0; i < TEST_COUNT(all); ++i) all[i].lease = lease;
    run_race(all, (int)TEST_COUNT(all), detach);
    rl_lease_free(lease);
    CHECK_INT(RL_OK, status_of_attach(client, "raced", token));
    CHECK_INT(0, exists("raced"));
  }
  rl_client_close(client);
}

static const struct test tests[] = {
    {"buffers", buffers},
    {"what_has_ended_cannot_be_detached", what_has_ended_cannot_be_detached},
    {"a_lost_lease_cannot_be_detached", a_lost_lease_cannot_be_detached},
    {"refused_it_is_held_as_before", refused_it_is_held_as_before},
    {"without_an_answer_it_is_not_held_any_more", without_an_answer_it_is_not_held_any_more},
    {"a_queue_hears_of_it", a_queue_hears_of_it},
    {"what_is_freed_behind_it_releases_nothing", what_is_freed_behind_it_releases_nothing},
    {"a_waiting_upgrade_ends", a_waiting_upgrade_ends},
    {"one_of_many_attaches_wins", one_of_many_attaches_wins},
    {"one_of_many_detaches_is_answered", one_of_many_detaches_is_answered},
    {"unsent_it_is_held_as_before", unsent_it_is_held_as_before},
};

int main(int argc, char** argv) { return run_tests(tests, TEST_COUNT(tests), 120, argc, argv); }
