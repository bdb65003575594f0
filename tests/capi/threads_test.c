/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Goal: a lock excludes threads, of one client and of several, and its memory effects are those of
 * a mutex. Method: counters that lose increments as soon as two threads are inside.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "calls.h"
#include "harness.h"
#include "redlatch/redlatch.h"
#include "server.h"

enum { THREAD_COUNT = 8, ROUND_COUNT = 250, BURST = 4 };

struct worker {
  pthread_t thread;
  rl_client* client;
  const rl_acquire_options* options;
  char name[32];
  int round_count;
  int64_t last_fence;
};

/* Plain on purpose: under one client the lock itself must order these accesses, and the thread
   sanitizer sees it if it does not. */
static int plain_counter;

/* For clients that only meet at the server, which no sanitizer can see. Read and written apart, so
   that two threads inside lose increments. */
static atomic_int shared_counter;
static atomic_int inside_count;
static atomic_int stop;

/* With RESP2 the library's thread reads a second connection: another set of hands. */
static const char* protocol = "protocol=3";

static rl_lease* take(struct worker* self) {
  rl_error* err = rl_error_new();
  rl_lease* lease =
      rl_acquire(self->client, self->name, strlen(self->name), 20000, self->options, err);
  if (!CHECK(lease != NULL)) fprintf(stderr, "  %s\n", rl_error_message(err));
  rl_error_free(err);
  return lease;
}

static void* count_plainly(void* argument) {
  struct worker* self = (struct worker*)argument;
  int i;
  for (i = 0; i < self->round_count; ++i) {
    rl_lease* lease = take(self);
    if (lease == NULL) break;
    ++plain_counter;
    give_back(lease);
  }
  return NULL;
}

static void* count_between_clients(void* argument) {
  struct worker* self = (struct worker*)argument;
  int i;
  for (i = 0; i < self->round_count; ++i) {
    rl_lease* lease = take(self);
    int seen;
    if (lease == NULL) break;
    CHECK_INT(0, atomic_fetch_add(&inside_count, 1));
    seen = atomic_load(&shared_counter);
    CHECK(rl_lease_fence(lease) > self->last_fence);
    self->last_fence = rl_lease_fence(lease);
    atomic_store(&shared_counter, seen + 1);
    atomic_fetch_sub(&inside_count, 1);
    give_back(lease);
  }
  return NULL;
}

static void run_workers(struct worker* workers, size_t count, void* (*body)(void*)) {
  size_t i;
  for (i = 0; i < count; ++i) {
    if (!CHECK(pthread_create(&workers[i].thread, NULL, body, &workers[i]) == 0)) abort();
  }
  for (i = 0; i < count; ++i) {
    pthread_join(workers[i].thread, NULL);
  }
}

static void threads_of_one_client_exclude_each_other(void) {
  struct worker workers[THREAD_COUNT];
  rl_client* client = client_with(protocol);
  size_t i;
  memset(workers, 0, sizeof workers);
  for (i = 0; i < THREAD_COUNT; ++i) {
    workers[i].client = client;
    workers[i].round_count = ROUND_COUNT;
    snprintf(workers[i].name, sizeof workers[i].name, "shared");
  }
  plain_counter = 0;
  run_workers(workers, THREAD_COUNT, count_plainly);
  CHECK_INT(THREAD_COUNT * ROUND_COUNT, plain_counter);
  rl_client_close(client);
}

static void threads_of_two_clients_exclude_each_other(void) {
  struct worker workers[THREAD_COUNT];
  rl_client* clients[2];
  size_t i;
  clients[0] = client_with(protocol);
  clients[1] = client_with(protocol);
  memset(workers, 0, sizeof workers);
  for (i = 0; i < THREAD_COUNT; ++i) {
    workers[i].client = clients[i % 2];
    workers[i].round_count = ROUND_COUNT;
    snprintf(workers[i].name, sizeof workers[i].name, "between");
  }
  atomic_store(&shared_counter, 0);
  run_workers(workers, THREAD_COUNT, count_between_clients);
  CHECK_INT(THREAD_COUNT * ROUND_COUNT, atomic_load(&shared_counter));
  rl_client_close(clients[0]);
  rl_client_close(clients[1]);
}

/* Replies must reach the thread that asked: each has a name of its own, and never waits. */
static void threads_of_two_clients_with_resp2(void) {
  protocol = "protocol=2";
  threads_of_two_clients_exclude_each_other();
  protocol = "protocol=3";
}

static void* use_own_name(void* argument) {
  struct worker* self = (struct worker*)argument;
  int i;
  for (i = 0; i < self->round_count; ++i) {
    rl_lease* lease = rl_acquire(self->client, self->name, strlen(self->name), 0, NULL, NULL);
    rl_info* info;
    char token[40];
    char holder[40];
    if (!CHECK(lease != NULL)) break;
    info = rl_inspect(self->client, self->name, strlen(self->name), NULL);
    rl_lease_token(lease, token, sizeof token);
    rl_info_text(info, RL_PART_HOLDER, 0, RL_FIELD_TOKEN, holder, sizeof holder);
    CHECK_INT(1, rl_info_count(info, RL_PART_HOLDER));
    CHECK_INT(0, strcmp(token, holder));
    rl_info_free(info);
    give_back(lease);
  }
  return NULL;
}

static void threads_with_their_own_names_never_wait(void) {
  struct worker workers[THREAD_COUNT];
  rl_client* client = client_with(protocol);
  size_t i;
  memset(workers, 0, sizeof workers);
  for (i = 0; i < THREAD_COUNT; ++i) {
    workers[i].client = client;
    workers[i].round_count = ROUND_COUNT;
    snprintf(workers[i].name, sizeof workers[i].name, "own-%u", (unsigned)i);
  }
  run_workers(workers, THREAD_COUNT, use_own_name);
  rl_client_close(client);
}

/* Threads that pass the lock among themselves for as long as somebody else needs it. */
static void* hog(void* argument) {
  struct worker* self = (struct worker*)argument;
  while (!atomic_load(&stop)) {
    rl_lease* lease = take(self);
    if (lease == NULL) break;
    atomic_fetch_add(&shared_counter, 1);
    give_back(lease);
  }
  return NULL;
}

/* Wait as `guest`. @return how often the hogs had the lock meanwhile. */
static int wait_among_hogs(struct worker* guest) {
  rl_request* request =
      rl_acquire_start(guest->client, guest->name, strlen(guest->name), 20000, NULL);
  int before;
  int after;
  /* The answer comes after that of the acquire: from here on the guest stands in the queue. */
  rl_info_free(rl_inspect(guest->client, "free", 4, NULL));
  before = atomic_load(&shared_counter);
  CHECK_INT(RL_OK, rl_request_wait(request, 20000));
  after = atomic_load(&shared_counter); /* Before the lease, which nobody took, goes. */
  rl_request_free(request);
  return after - before;
}

/* While one waits, the others get at most the rest of their burst, then one more turn of theirs. */
static void max_local_handoffs_bounds_the_passing_on(void) {
  struct worker hogs[THREAD_COUNT];
  struct worker guest;
  rl_client* client = client_with(protocol);
  rl_acquire_options* options = rl_acquire_options_new();
  size_t i;
  int round;
  int passed_count = 0;
  CHECK_INT(RL_OK, rl_acquire_options_set_max_local_handoffs(options, BURST));
  memset(hogs, 0, sizeof hogs);
  memset(&guest, 0, sizeof guest);
  guest.client = client_with(protocol);
  snprintf(guest.name, sizeof guest.name, "burst");
  atomic_store(&stop, 0);
  for (i = 0; i < THREAD_COUNT; ++i) {
    hogs[i] = guest;
    hogs[i].client = client;
    hogs[i].options = options;
    if (!CHECK(pthread_create(&hogs[i].thread, NULL, hog, &hogs[i]) == 0)) abort();
  }
  /* Without hogs at work the bound would say nothing, and a busy machine may starve them. */
  for (round = 0; round < 100 || passed_count <= 100; ++round) {
    const int passed = wait_among_hogs(&guest);
    CHECK(passed <= 2 * (BURST + 1) + 1);
    passed_count += passed;
  }
  atomic_store(&stop, 1);
  for (i = 0; i < THREAD_COUNT; ++i) {
    pthread_join(hogs[i].thread, NULL);
  }
  rl_acquire_options_free(options);
  rl_client_close(guest.client);
  rl_client_close(client);
}

static const struct test tests[] = {
    {"threads_of_one_client_exclude_each_other", threads_of_one_client_exclude_each_other},
    {"threads_of_two_clients_exclude_each_other", threads_of_two_clients_exclude_each_other},
    {"threads_of_two_clients_with_resp2", threads_of_two_clients_with_resp2},
    {"threads_with_their_own_names_never_wait", threads_with_their_own_names_never_wait},
    {"max_local_handoffs_bounds_the_passing_on", max_local_handoffs_bounds_the_passing_on},
};

int main(int argc, char** argv) { return run_tests(tests, TEST_COUNT(tests), argc, argv); }
