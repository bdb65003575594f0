/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Goal: a cancel is decisive: whatever crosses it, the caller has either the lease or RL_CANCELLED,
 * never both, and the lock is free or handed on afterwards. Each watched request posts one tag, and
 * that goes to one thread. Method: thousands of cancels that cross a grant, watched or not, one at
 * a time, each aimed at the moment where both outcomes are likely, and in the middle of chains of
 * grants; requests whose result is seen before their tag; and several clients and threads on one
 * queue.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "calls.h"
#include "harness.h"
#include "redlatch/redlatch.h"
#include "server.h"

enum { RACE_COUNT = 1000, CHAIN = 100, CHAIN_ROUNDS = 60, CLIENT_COUNT = 3, WAIT_MS = 30000 };
enum { AFTER_COUNT = 10000 };

/* With RESP2 the library's thread reads a second connection, and messages overtake answers. */
static const char* protocol = "protocol=3";

static void spin(int count) {
  volatile int left = count;
  while (left > 0) --left;
}

/* ---- one cancel, one grant ------------------------------------------------------------------- */

struct race {
  atomic_int round; /* The releaser starts with the round of the same number. */
  atomic_int done;  /* The last round that it has finished. */
  _Atomic(rl_lease*) lease;
};

static void* release_each_round(void* argument) {
  struct race* race = (struct race*)argument;
  int round;
  for (round = 1; round <= RACE_COUNT; ++round) {
    rl_lease* lease;
    while (atomic_load(&race->round) < round) sched_yield();
    lease = atomic_load(&race->lease);
    if (lease == NULL) break;
    give_back(lease);
    atomic_store(&race->done, round);
  }
  return NULL;
}

/* The request was just cancelled. `tag` is 0 if nobody watches. @return whether the grant won. */
static int judge(rl_request* request, rl_status cancelled, rl_queue* queue, int64_t tag) {
  rl_lease* lease = rl_request_take_lease(request);
  CHECK(cancelled == RL_OK || cancelled == RL_CANCELLED);
  CHECK_INT(cancelled, rl_request_status(request));
  CHECK_INT(cancelled, rl_request_wait(request, 0));
  CHECK_INT(cancelled, rl_request_cancel(request));
  CHECK((lease != NULL) == (cancelled == RL_OK));
  CHECK(rl_request_take_lease(request) == NULL);
  CHECK_INT(tag, rl_queue_next(queue, tag == 0 ? 0 : WAIT_MS));
  if (lease != NULL) CHECK_INT(RL_OK, rl_lease_check(lease, NULL));
  if (lease != NULL) give_back(lease);
  rl_request_free(request);
  CHECK_INT(0, rl_queue_next(queue, 0));
  return cancelled == RL_OK;
}

/* The one behind is granted in any case, and does not wait for a claim that nobody makes. */
static void check_handed_on(rl_request* next, rl_queue* queue, int64_t tag, int* slow_count) {
  const int64_t start_ms = now_ms();
  CHECK_INT(tag, rl_queue_next(queue, WAIT_MS));
  CHECK_INT(RL_OK, rl_request_status(next));
  rl_request_free(next);
  *slow_count += now_ms() - start_ms >= RL_PROVISIONAL_MS - 500;
}

static void race_many(rl_client* holder, rl_client* waiter, rl_client* behind, int is_watched) {
  struct race race = {0, 0, NULL};
  rl_queue* queue = rl_queue_new(NULL);
  rl_queue* next_queue = rl_queue_new(NULL);
  pthread_t releaser;
  int delay = 1000;
  int granted_count = 0;
  int slow_count = 0;
  int round;
  REQUIRE(pthread_create(&releaser, NULL, release_each_round, &race) == 0);
  for (round = 1; round <= RACE_COUNT; ++round) {
    rl_lease* lease = rl_acquire(holder, TEXT("race"), WAIT_MS, NULL, NULL);
    rl_request* request = rl_acquire_start(waiter, TEXT("race"), WAIT_MS, NULL);
    rl_request* next = rl_acquire_start(behind, TEXT("race"), WAIT_MS, NULL);
    int is_granted;
    if (is_watched) CHECK_INT(RL_OK, rl_request_watch(request, queue, round));
    CHECK_INT(RL_OK, rl_request_watch(next, next_queue, round));
    atomic_store(&race.lease, lease);
    atomic_store(&race.round, round);
    if (!CHECK(lease != NULL)) break;
    spin(delay);
    is_granted = judge(request, rl_request_cancel(request), queue, is_watched ? round : 0);
    granted_count += is_granted;
    /* Walk to where both happen, whatever the machine. */
    delay += is_granted ? -(delay / 8 + 1) : delay / 8 + 8;
    check_handed_on(next, next_queue, round, &slow_count);
    while (atomic_load(&race.done) < round) sched_yield();
    if (failure_count() > 20 || slow_count > 3) {
      atomic_store(&race.lease, NULL);
      atomic_store(&race.round, RACE_COUNT);
      break;
    }
  }
  pthread_join(releaser, NULL);
  rl_queue_free(queue);
  rl_queue_free(next_queue);
  CHECK_INT(RACE_COUNT + 1, round);
  CHECK(slow_count <= 3);
  CHECK(granted_count > RACE_COUNT / 50);
  CHECK(RACE_COUNT - granted_count > RACE_COUNT / 50);
}

static void cancels_cross_grants_of_another_client(void) {
  rl_client* holder = client_with(protocol);
  rl_client* waiter = client_with(protocol);
  rl_client* behind = client_with(protocol);
  race_many(holder, waiter, behind, 0);
  race_many(holder, waiter, behind, 1);
  rl_client_close(holder);
  rl_client_close(waiter);
  rl_client_close(behind);
  EVENTUALLY(server_number("EXISTS", "race", NULL) == 0, 2000);
}

static void cancels_cross_grants_of_the_same_client(void) {
  rl_client* client = client_with(protocol);
  race_many(client, client, client, 0);
  race_many(client, client, client, 1);
  rl_client_close(client);
  EVENTUALLY(server_number("EXISTS", "race", NULL) == 0, 2000);
}

/* ---- cancels in a chain of grants ------------------------------------------------------------ */

struct chain {
  rl_request* requests[CHAIN];
  int tag_counts[CHAIN];
  rl_lease* leases[CHAIN];
  atomic_int is_ready;
  atomic_int left; /* Not taken from the queue yet. */
  unsigned seed;
};

/* Cancels every other one, in an order that has nothing to do with that of the grants. */
static void* cancel_some(void* argument) {
  struct chain* chain = (struct chain*)argument;
  unsigned random = chain->seed;
  int i;
  while (!atomic_load(&chain->is_ready)) sched_yield();
  for (i = 0; i < CHAIN / 2 && atomic_load(&chain->left) > 0; ++i) {
    rl_status status;
    random = random * 1103515245u + 12345u;
    status = rl_request_cancel(chain->requests[random / 65536u % CHAIN]);
    CHECK(status == RL_OK || status == RL_CANCELLED);
    spin((int)(random / 65536u % 20000u));
  }
  return NULL;
}

/* @return whether it was granted; the lock must be nobody else's then. */
static int end_link(struct chain* chain, int64_t tag, int* held_count) {
  rl_request* request = chain->requests[tag];
  const rl_status status = rl_request_status(request);
  rl_lease* lease = rl_request_take_lease(request);
  CHECK_INT(1, ++chain->tag_counts[tag]);
  CHECK(status == RL_OK || status == RL_CANCELLED);
  CHECK((lease != NULL) == (status == RL_OK));
  if (lease == NULL) return 0;
  CHECK_INT(1, ++*held_count);
  CHECK_INT(RL_OK, rl_lease_check(lease, NULL));
  --*held_count;
  rl_request_free(rl_release_start(lease)); /* Nobody waits: the next ones come by tags. */
  chain->leases[tag] = lease;
  return 1;
}

static int run_chain(rl_client* const* clients, int client_count, rl_queue* queue, unsigned seed) {
  static struct chain chain;
  pthread_t canceller;
  int held_count = 0;
  int granted_count = 0;
  int i;
  memset(&chain, 0, sizeof chain);
  chain.seed = seed;
  atomic_store(&chain.left, CHAIN);
  if (!CHECK(pthread_create(&canceller, NULL, cancel_some, &chain) == 0)) return 0;
  for (i = 0; i < CHAIN; ++i) {
    chain.requests[i] = rl_acquire_start(clients[i % client_count], TEXT("chain"), WAIT_MS, NULL);
    CHECK_INT(RL_OK, rl_request_watch(chain.requests[i], queue, i + 1));
  }
  atomic_store(&chain.is_ready, 1);
  while (atomic_load(&chain.left) > 0) {
    const int64_t tag = rl_queue_next(queue, WAIT_MS);
    if (!CHECK(tag >= 1 && tag <= CHAIN)) break;
    granted_count += end_link(&chain, tag - 1, &held_count);
    atomic_fetch_sub(&chain.left, 1);
  }
  pthread_join(canceller, NULL);
  CHECK_INT(0, rl_queue_next(queue, 0));
  for (i = 0; i < CHAIN; ++i) {
    rl_request_free(chain.requests[i]);
    rl_lease_free(chain.leases[i]);
  }
  return granted_count;
}

static void run_chains(rl_client* const* clients, int client_count) {
  rl_queue* queue = rl_queue_new(NULL);
  int granted_count = 0;
  int round;
  for (round = 1; round <= CHAIN_ROUNDS && failure_count() < 20; ++round) {
    granted_count += run_chain(clients, client_count, queue, (unsigned)round);
  }
  CHECK(granted_count > 0 && granted_count < CHAIN * CHAIN_ROUNDS);
  rl_queue_free(queue);
}

static void cancels_in_a_chain_between_clients(void) {
  rl_client* clients[CLIENT_COUNT];
  int i;
  for (i = 0; i < CLIENT_COUNT; ++i) clients[i] = client_with(protocol);
  run_chains(clients, CLIENT_COUNT);
  for (i = 0; i < CLIENT_COUNT; ++i) rl_client_close(clients[i]);
  EVENTUALLY(server_number("EXISTS", "chain", NULL) == 0, 2000);
}

static void cancels_in_a_chain_with_resp2(void) {
  protocol = "protocol=2";
  cancels_in_a_chain_between_clients();
  protocol = "protocol=3";
}

static void cancels_in_a_chain_of_one_client(void) {
  rl_client* client = client_with(protocol);
  run_chains(&client, 1);
  rl_client_close(client);
  EVENTUALLY(server_number("EXISTS", "chain", NULL) == 0, 2000);
}

/* ---- a result that is seen before its tag ---------------------------------------------------- */

/* Whoever has freed a request has seen its tag, finds it in the queue, or gets none: a tag that
   comes later may be the address of something that is gone. */
static void no_tag_comes_after_free(void) {
  rl_client* client = client_with(protocol);
  rl_queue* queue = rl_queue_new(NULL);
  rl_lease* lease = rl_acquire(client, TEXT("after"), WAIT_MS, NULL, NULL);
  int seen_count = 0;
  int64_t i;
  for (i = 1; i <= AFTER_COUNT && failure_count() < 20; ++i) {
    const int64_t end_ms = now_ms() + WAIT_MS;
    rl_request* request = rl_acquire_start(client, TEXT("after"), 0, NULL);
    int64_t tag;
    CHECK_INT(RL_OK, rl_request_watch(request, queue, i));
    while (rl_request_status(request) == RL_PENDING && now_ms() < end_ms) continue;
    CHECK_INT(RL_BUSY, rl_request_status(request));
    rl_request_free(request);
    while ((tag = rl_queue_next(queue, 0)) != 0) {
      CHECK_INT(i, tag);
      ++seen_count;
    }
  }
  CHECK_INT(AFTER_COUNT, seen_count);
  rl_lease_free(lease);
  rl_queue_free(queue);
  rl_client_close(client);
}

/* ---- one queue for all ----------------------------------------------------------------------- */

enum { SHARED_COUNT = 1500, POSTED_COUNT = 20000, CONSUMER_COUNT = 3 };
enum { ALL_COUNT = SHARED_COUNT + POSTED_COUNT };

static rl_queue* shared_queue;
static rl_request* shared_requests[SHARED_COUNT + 1];
static atomic_int shared_seen[ALL_COUNT + 1];
static atomic_int shared_left;

static void* consume(void* unused) {
  int64_t tag;
  (void)unused;
  while ((tag = rl_queue_next(shared_queue, WAIT_MS)) > 0) {
    if (!CHECK(tag <= ALL_COUNT)) continue;
    CHECK_INT(0, atomic_fetch_add(&shared_seen[tag], 1));
    if (tag <= SHARED_COUNT) {
      CHECK_INT(RL_OK, rl_request_status(shared_requests[tag]));
      rl_request_free(shared_requests[tag]); /* Releases, so that others go on. */
    }
    atomic_fetch_sub(&shared_left, 1);
  }
  CHECK_INT(-1, tag); /* Not 0: something would have been waited for in vain. */
  return NULL;
}

static void* post_many(void* unused) {
  int64_t i;
  (void)unused;
  for (i = 1; i <= POSTED_COUNT; ++i) {
    CHECK_INT(RL_OK, rl_queue_post(shared_queue, SHARED_COUNT + i));
    if (i % 50 == 0) sched_yield();
  }
  return NULL;
}

static void each_tag_goes_to_one_consumer(void) {
  rl_client* clients[CLIENT_COUNT];
  pthread_t consumers[CONSUMER_COUNT], poster;
  char name[32];
  int i;
  shared_queue = rl_queue_new(NULL);
  atomic_store(&shared_left, ALL_COUNT);
  for (i = 0; i < CLIENT_COUNT; ++i) clients[i] = client_with(protocol);
  for (i = 0; i < CONSUMER_COUNT; ++i) {
    REQUIRE(pthread_create(&consumers[i], NULL, consume, NULL) == 0);
  }
  REQUIRE(pthread_create(&poster, NULL, post_many, NULL) == 0);
  for (i = 1; i <= SHARED_COUNT; ++i) {
    const int length = snprintf(name, sizeof name, "consume-%d", i % 40);
    shared_requests[i] =
        rl_acquire_start(clients[i % CLIENT_COUNT], name, (size_t)length, WAIT_MS, NULL);
    CHECK_INT(RL_OK, rl_request_watch(shared_requests[i], shared_queue, i));
  }
  EVENTUALLY(atomic_load(&shared_left) == 0, WAIT_MS);
  for (i = 0; i < CONSUMER_COUNT; ++i) CHECK_INT(RL_OK, rl_queue_post(shared_queue, -1));
  for (i = 0; i < CONSUMER_COUNT; ++i) pthread_join(consumers[i], NULL);
  pthread_join(poster, NULL);
  for (i = 1; i <= ALL_COUNT; ++i) CHECK_INT(1, atomic_load(&shared_seen[i]));
  CHECK_INT(0, rl_queue_next(shared_queue, 0));
  rl_queue_free(shared_queue);
  for (i = 0; i < CLIENT_COUNT; ++i) rl_client_close(clients[i]);
}

static const struct test tests[] = {
    {"cancels_cross_grants_of_another_client", cancels_cross_grants_of_another_client},
    {"cancels_cross_grants_of_the_same_client", cancels_cross_grants_of_the_same_client},
    {"cancels_in_a_chain_between_clients", cancels_in_a_chain_between_clients},
    {"cancels_in_a_chain_with_resp2", cancels_in_a_chain_with_resp2},
    {"cancels_in_a_chain_of_one_client", cancels_in_a_chain_of_one_client},
    {"no_tag_comes_after_free", no_tag_comes_after_free},
    {"each_tag_goes_to_one_consumer", each_tag_goes_to_one_consumer},
};

int main(int argc, char** argv) {
  server_url();
  return run_tests(tests, TEST_COUNT(tests), argc, argv);
}
