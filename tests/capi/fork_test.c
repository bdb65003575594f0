/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Goal: a forked child can neither use nor harm what its parent holds. Method: the child calls
 * every function with the parent's handles, frees them all, and works with a client of its own;
 * then the parent goes on.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calls.h"
#include "harness.h"
#include "redlatch/redlatch.h"
#include "server.h"

#if defined(__SANITIZE_THREAD__)
/* The thread sanitizer ends a child that makes threads. */
enum { CHILD_MAY_WORK = 0 };
#else
enum { CHILD_MAY_WORK = 1 };
#endif

/* A busy machine may be two seconds late with a renewal. */
enum { TTL_MS = 3000 };
static const char patient[] = "command_timeout=20s&connect_timeout=20s";

struct handles {
  rl_error* err;
  rl_client* client;
  rl_lease* lease;     /* Holds "one", renewed every second. */
  rl_request* pending; /* Waits for "two", which `two` holds. */
  rl_request* granted; /* Holds "three". */
  rl_lease* two;
  rl_info* info;
  rl_queue* queue; /* Has the tag 9, and watches `pending`, `lease` and recalls of `two`. */
  rl_acquire_options* two_permits;
  rl_names* names;       /* "four" and "five". */
  rl_lease* all_names;   /* Holds them. */
  rl_lease* permits;     /* Two of three of "pool". */
  rl_request* for_names; /* It and the next one wait for the two before. */
  rl_request* for_permits;
};

static void make_options(struct handles* all) {
  all->two_permits = rl_acquire_options_new();
  rl_acquire_options_set_ttl_ms(all->two_permits, TTL_MS);
  CHECK_INT(RL_OK, rl_acquire_options_set(all->two_permits, TEXT("permits"), TEXT("2"), NULL));
  CHECK_INT(RL_OK, rl_acquire_options_set(all->two_permits, TEXT("limit"), TEXT("3"), NULL));
  all->names = rl_names_new();
  CHECK_INT(RL_OK, rl_names_add(all->names, TEXT("four"), RL_MODE_WRITE, NULL));
  CHECK_INT(RL_OK, rl_names_add(all->names, TEXT("five"), RL_MODE_WRITE, NULL));
}

/* A lease of several names and one of a semaphore, and a waiter for each. */
static void make_names_and_permits(struct handles* all, const rl_acquire_options* options) {
  make_options(all);
  all->all_names = rl_acquire_all(all->client, all->names, 0, options, NULL);
  all->permits = rl_acquire(all->client, TEXT("pool"), 0, all->two_permits, NULL);
  all->for_names = rl_acquire_all_start(all->client, all->names, -1, options);
  all->for_permits = rl_acquire_start(all->client, TEXT("pool"), -1, all->two_permits);
  CHECK(all->all_names && all->permits);
  CHECK_INT(RL_PENDING, rl_request_wait(all->for_names, 20));
  CHECK_INT(RL_PENDING, rl_request_wait(all->for_permits, 20));
}

static void make_handles(struct handles* all) {
  rl_acquire_options* options = rl_acquire_options_new();
  rl_acquire_options_set_ttl_ms(options, TTL_MS);
  all->err = rl_error_new();
  all->client = client_with(patient);
  all->lease = rl_acquire(all->client, TEXT("one"), 0, options, NULL);
  all->two = rl_acquire(all->client, TEXT("two"), 0, options, NULL);
  all->pending = rl_acquire_start(all->client, TEXT("two"), -1, options);
  all->granted = rl_acquire_start(all->client, TEXT("three"), 0, options);
  all->info = rl_inspect(all->client, TEXT("one"), NULL);
  CHECK_INT(RL_OK, rl_request_wait(all->granted, 5000));
  CHECK_INT(RL_PENDING, rl_request_wait(all->pending, 20));
  all->queue = rl_queue_new(NULL);
  CHECK_INT(RL_OK, rl_request_watch(all->pending, all->queue, 1));
  CHECK_INT(RL_OK, rl_lease_watch(all->lease, all->queue, 2));
  CHECK_INT(RL_OK, rl_recall(all->client, TEXT("one"), TEXT("fork"), NULL, NULL));
  CHECK_INT(RL_OK, rl_extend(all->lease, TTL_MS, NULL));
  CHECK_INT(1, rl_lease_recall_count(all->lease));
  CHECK_INT(RL_OK, rl_lease_watch_recall(all->two, all->queue, 8));
  CHECK_INT(RL_OK, rl_queue_post(all->queue, 9));
  CHECK(all->lease && all->two && all->info && all->err);
  make_names_and_permits(all, options);
  rl_acquire_options_free(options);
}

#define NO_HANDLE(call)                                \
  do {                                                 \
    CHECK((call) == NULL);                             \
    CHECK_INT(RL_E_FORKED, rl_error_status(all->err)); \
  } while (0)
#define FORKED(call) CHECK_INT(RL_E_FORKED, (call))

static void check_forked_request(rl_request* request) {
  if (request == NULL) return;
  FORKED(rl_request_wait(request, -1));
  rl_request_free(request);
}

/* The tags of `queue` are the parent's; one of the child is its own. */
static void use_queues(struct handles* all) {
  rl_event event;
  rl_queue* own = rl_queue_new(NULL);
  CHECK_INT(-1, rl_queue_fd(all->queue));
  CHECK_INT(0, rl_queue_next(all->queue, -1));
  FORKED(rl_queue_post(all->queue, 3));
  FORKED(rl_request_watch(all->pending, all->queue, 4));
  FORKED(rl_request_watch(all->pending, own, 4));
  FORKED(rl_request_watch(all->pending, NULL, 0));
  FORKED(rl_queue_drive(all->queue, all->client));
  FORKED(rl_queue_drive(all->queue, NULL));
  FORKED(rl_queue_drive(own, all->client));
  FORKED(rl_lease_watch(all->lease, all->queue, 5));
  FORKED(rl_lease_watch(all->lease, own, 5));
  FORKED(rl_lease_watch_recall(all->lease, all->queue, 8));
  FORKED(rl_lease_watch_recall(all->lease, own, 8));
  FORKED(rl_lease_watch_recall(all->lease, NULL, 0));
  FORKED(rl_client_log_watch(all->client, RL_LOG_INFO, all->queue, 6));
  FORKED(rl_client_log_watch(all->client, RL_LOG_INFO, own, 6));
  FORKED(rl_queue_next_event(all->queue, -1, &event));
  CHECK(rl_queue_fd(own) >= 0);
  CHECK_INT(RL_OK, rl_queue_post(own, 7));
  CHECK_INT(7, rl_queue_next(own, -1));
  rl_queue_free(own);
}

static void check_forked_lease(rl_lease* lease, rl_error* err) {
  FORKED(rl_release(lease, err));
  FORKED(rl_extend(lease, 60000, err));
  FORKED(rl_lease_check(lease, err));
  FORKED(rl_lease_wait_lost(lease, -1));
  CHECK_INT(0, rl_lease_state(lease));
  CHECK_INT(0, rl_lease_remaining_ms(lease));
  check_forked_request(rl_release_start(lease));
  check_forked_request(rl_extend_start(lease, 60000));
}

static void call_of_names_and_permits(struct handles* all) {
  NO_HANDLE(rl_acquire_all(all->client, all->names, -1, NULL, all->err));
  check_forked_request(rl_acquire_all_start(all->client, all->names, -1, NULL));
  NO_HANDLE(rl_acquire(all->client, TEXT("pool"), -1, all->two_permits, all->err));
  check_forked_request(rl_acquire_start(all->client, TEXT("pool"), -1, all->two_permits));
  NO_HANDLE(rl_semaphore_stats(all->client, TEXT("pool"), all->err));
  check_forked_request(rl_semaphore_stats_start(all->client, TEXT("pool")));
  FORKED(rl_semaphore_set_cap(all->client, TEXT("pool"), 1, 0, all->err));
  check_forked_request(rl_semaphore_set_cap_start(all->client, TEXT("pool"), 1, 0));
  FORKED(rl_request_wait(all->for_names, -1));
  FORKED(rl_request_cancel(all->for_names));
  FORKED(rl_request_wait(all->for_permits, -1));
  FORKED(rl_request_cancel(all->for_permits));
  check_forked_lease(all->all_names, all->err);
  check_forked_lease(all->permits, all->err);
}

static void call_of_jobs(struct handles* all) {
  FORKED(rl_once_begin(all->lease, TEXT("k"), 1000, 1, all->err));
  check_forked_request(rl_once_begin_start(all->lease, TEXT("k"), 1000, 1));
  FORKED(rl_once_done(all->lease, TEXT("k"), all->err));
  check_forked_request(rl_once_done_start(all->lease, TEXT("k")));
  FORKED(rl_once_forget(all->client, TEXT("k"), all->err));
  check_forked_request(rl_once_forget_start(all->client, TEXT("k")));
  check_forked_request(rl_flight_start(all->client, TEXT("k"), -1, NULL));
  FORKED(rl_flight_store(all->lease, TEXT("v"), 1000, all->err));
  check_forked_request(rl_flight_store_start(all->lease, TEXT("v"), 1000));
  FORKED(rl_flight_fail(all->lease, TEXT("t"), TEXT("x"), all->err));
  check_forked_request(rl_flight_fail_start(all->lease, TEXT("t"), TEXT("x")));
  NO_HANDLE(rl_leader(all->client, TEXT("k"), all->err));
  check_forked_request(rl_leader_start(all->client, TEXT("k")));
  NO_HANDLE(rl_leader_watch(all->client, TEXT("k"), -1, -1, all->err));
  check_forked_request(rl_leader_watch_start(all->client, TEXT("k"), -1, -1));
}

/* The parent was asked to finish, the child was not. */
static void call_of_recalls(struct handles* all) {
  rl_request* request;
  char reason[8] = "none";
  int64_t heard = 9;
  FORKED(rl_recall(all->client, TEXT("one"), TEXT("why"), &heard, all->err));
  CHECK_INT(0, heard);
  request = rl_recall_start(all->client, TEXT("one"), TEXT("why"));
  CHECK_INT(0, rl_recall_heard(request));
  check_forked_request(request);
  CHECK_INT(0, rl_lease_recall_count(all->lease));
  CHECK_INT(0, rl_lease_recall_reason(all->lease, reason, sizeof reason));
  CHECK_INT(0, reason[0]);
}

static void call_everything(struct handles* all) {
  call_of_jobs(all);
  call_of_recalls(all);
  use_queues(all);
  call_of_names_and_permits(all);
  FORKED(rl_client_connect(all->client, -1, all->err));
  FORKED(rl_error_status(all->err));
  NO_HANDLE(rl_acquire(all->client, TEXT("one"), -1, NULL, all->err));
  NO_HANDLE(rl_lease_attach(all->client, TEXT("one"), TEXT("012345678901234567890Affffffffff"), 0,
                            NULL, all->err));
  NO_HANDLE(rl_inspect(all->client, TEXT("one"), all->err));
  NO_HANDLE(rl_list_open(all->client, NULL, 0, all->err));
  check_forked_request(rl_inspect_start(all->client, TEXT("one")));
  check_forked_request(rl_force_release_any_start(all->client, TEXT("one")));
  check_forked_request(rl_lease_attach_start(all->client, TEXT("one"),
                                             TEXT("012345678901234567890Affffffffff"), 0, NULL));
  FORKED(rl_force_release(all->client, TEXT("one"), TEXT("x"), all->err));
  FORKED(rl_force_release_any(all->client, TEXT("one"), all->err));
  NO_HANDLE(rl_client_info(all->client, all->err));
  CHECK_INT(0, rl_client_log_next(all->client, NULL, 0)); /* The parent's lines are the parent's. */
  check_forked_lease(all->lease, all->err);
  FORKED(rl_request_wait(all->pending, -1));
  FORKED(rl_request_cancel(all->pending));
  FORKED(rl_request_wait(all->granted, 0));
  CHECK(rl_request_take_lease(all->granted) == NULL);
  check_forked_request(rl_acquire_start(all->client, TEXT("one"), -1, NULL));
  FORKED(rl_lease_detach(all->lease, NULL, 0, all->err));
  check_forked_request(rl_lease_detach_start(all->lease));
  rl_client_shutdown(all->client);
}

static void free_everything(struct handles* all, int client_first) {
  if (client_first) rl_client_close(all->client);
  rl_request_free(all->pending);
  rl_request_free(all->granted);
  rl_request_free(all->for_names);
  rl_request_free(all->for_permits);
  rl_lease_free(all->all_names);
  rl_lease_free(all->permits);
  rl_names_free(all->names);
  rl_acquire_options_free(all->two_permits);
  rl_lease_free(all->lease);
  rl_lease_free(all->two);
  rl_info_free(all->info);
  rl_queue_free(all->queue);
  rl_error_free(all->err);
  if (!client_first) rl_client_close(all->client);
}

/* Those of the parent are not the child's, and one permit is left. */
static void acquire_names_and_permits(rl_client* client, rl_error* err) {
  rl_lease* lease;
  struct handles own;
  make_options(&own);
  CHECK(rl_acquire_all(client, own.names, 0, NULL, err) == NULL);
  CHECK_INT(RL_BUSY, rl_error_status(err));
  CHECK(rl_acquire(client, TEXT("pool"), 0, own.two_permits, err) == NULL);
  CHECK_INT(RL_BUSY, rl_error_status(err));
  rl_names_free(own.names);
  own.names = rl_names_new();
  rl_names_add(own.names, TEXT("six"), RL_MODE_WRITE, err);
  rl_names_add(own.names, TEXT("seven"), RL_MODE_WRITE, err);
  lease = rl_acquire_all(client, own.names, 0, NULL, err);
  CHECK_INT(RL_OK, rl_release(lease, err));
  rl_lease_free(lease);
  rl_names_free(own.names);
  rl_acquire_options_free(own.two_permits);
}

static void work_in_child(void) {
  rl_error* err = rl_error_new();
  rl_client* client = client_with(patient);
  rl_lease* lease = rl_acquire(client, TEXT("child"), 0, NULL, err);
  CHECK(lease != NULL);
  CHECK_INT(RL_OK, rl_release(lease, err));
  /* The parent's lock is somebody else's lock. */
  CHECK(rl_acquire(client, TEXT("one"), 0, NULL, err) == NULL);
  CHECK_INT(RL_BUSY, rl_error_status(err));
  acquire_names_and_permits(client, err);
  rl_lease_free(lease);
  rl_client_close(client);
  rl_error_free(err);
}

static int run_child(struct handles* all, int client_first) {
  const pid_t child = fork();
  int status = -1;
  if (child == 0) {
    const int before = failure_count();
    alarm(300); /* Before its parent is thought to hang. */
    call_everything(all);
    if (CHILD_MAY_WORK) work_in_child();
    free_everything(all, client_first);
    if (CHILD_MAY_WORK) work_in_child();
    /* Not exit(): the server is the parent's to end. */
    _exit(failure_count() == before ? EXIT_SUCCESS : EXIT_FAILURE);
  }
  waitpid(child, &status, 0);
  return status;
}

static void check_grant(rl_lease* held, rl_request* waiting) {
  CHECK_INT(RL_PENDING, rl_request_status(waiting));
  CHECK_INT(RL_OK, rl_release(held, NULL));
  CHECK_INT(RL_OK, rl_request_wait(waiting, 5000));
}

/* What the child did must not be felt here. */
static void check_parent(struct handles* all) {
  const int64_t start_ms = now_ms();
  char token[40];
  char holder[40] = "";
  rl_lease_token(all->lease, token, sizeof token);
  /* Longer than the lease: somebody has renewed it. */
  while (now_ms() - start_ms < TTL_MS + 1000) {
    CHECK_INT(RL_OK, rl_lease_check(all->lease, NULL));
    CHECK_INT(RL_OK, rl_lease_check(all->all_names, NULL));
    CHECK_INT(RL_OK, rl_lease_check(all->permits, NULL));
    CHECK_INT(1, server_number("EXISTS", "three", NULL));
    sleep_ms(50);
  }
  CHECK(server_command(holder, sizeof holder, "GET", "one", NULL));
  CHECK_INT(0, strcmp(token, holder));
  CHECK_INT(RL_PENDING, rl_request_status(all->pending));
  CHECK(is_readable(all->queue));
  CHECK_INT(9, rl_queue_next(all->queue, 0));
  CHECK_INT(0, rl_queue_next(all->queue, 20));
  CHECK_INT(RL_OK, rl_release(all->two, NULL));
  CHECK_INT(1, rl_queue_next(all->queue, 5000));
  CHECK_INT(RL_OK, rl_request_status(all->pending));
  CHECK_INT(RL_OK, rl_release(all->lease, NULL));
  CHECK_INT(2, rl_queue_next(all->queue, 5000));
  CHECK_INT(0, server_number("EXISTS", "one", NULL));
  check_grant(all->all_names, all->for_names);
  check_grant(all->permits, all->for_permits);
}

static void check_fork(int client_first) {
  struct handles all;
  make_handles(&all);
  CHECK_INT(0, run_child(&all, client_first));
  check_parent(&all);
  free_everything(&all, 0);
  EVENTUALLY(server_number("EXISTS", "two", "three", "four", "five", "pool", NULL) == 0, 2000);
}

static void a_child_answers_forked_and_harms_nothing(void) { check_fork(0); }

static void a_child_may_close_the_client_first(void) { check_fork(1); }

/* A fork in the middle of traffic must not deadlock the child, whatever locks were taken then. */
static int is_over;

static void* make_traffic(void* client) {
  while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE)) {
    rl_lease* lease = rl_acquire((rl_client*)client, TEXT("traffic"), 10000, NULL, NULL);
    if (!CHECK(lease != NULL)) break;
    CHECK_INT(RL_OK, rl_release(lease, NULL));
    rl_lease_free(lease);
  }
  return NULL;
}

static void forks_in_the_middle_of_traffic_do_no_harm(void) {
  rl_client* client = server_client();
  pthread_t threads[3];
  int round;
  size_t i;
  is_over = 0;
  for (i = 0; i < TEST_COUNT(threads); ++i) {
    REQUIRE(pthread_create(&threads[i], NULL, make_traffic, client) == 0);
  }
  for (round = 0; round < 100; ++round) {
    const pid_t child = fork();
    int status = -1;
    if (child == 0) {
      alarm(300);
      if (rl_acquire(client, TEXT("traffic"), -1, NULL, NULL) != NULL) _exit(1);
      if (rl_client_connect(client, -1, NULL) != RL_E_FORKED) _exit(2);
      rl_client_close(client);
      _exit(0);
    }
    waitpid(child, &status, 0);
    CHECK_INT(0, status);
    if (status != 0) break;
  }
  __atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
  for (i = 0; i < TEST_COUNT(threads); ++i) {
    pthread_join(threads[i], NULL);
  }
  rl_client_close(client);
}

static const struct test tests[] = {
    {"a_child_answers_forked_and_harms_nothing", a_child_answers_forked_and_harms_nothing},
    {"a_child_may_close_the_client_first", a_child_may_close_the_client_first},
    {"forks_in_the_middle_of_traffic_do_no_harm", forks_in_the_middle_of_traffic_do_no_harm},
};

int main(int argc, char** argv) {
  server_url();
  return run_tests(tests, TEST_COUNT(tests), argc, argv);
}
