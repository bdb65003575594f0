/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Goal: running out of memory or of threads at any moment gives an honest status, no crash, and no
 * lock that stays behind; what a queue has promised to tell is told. Method: this program's own
 * malloc fails the Nth call, for N = 1, 2, .. until a scenario runs to its end without meeting it;
 * then the same with every call failing from the Nth on, for every other N, because then each lock
 * has to run out. Its own pthread_create() fails as well, in scenarios about that.
 *
 * Not built with sanitizers, which need malloc for themselves, nor without glibc.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calls.h"
#include "failures.h"
#include "harness.h"
#include "redlatch/redlatch.h"
#include "server.h"

enum { WAITER_LIMIT_MS = 20000 }; /* a hang, also on a busy machine */

/* ---- scenarios ------------------------------------------------------------------------------- */

static rl_client* open_for_scenario(void) {
  char url[256];
  rl_error* err = rl_error_new();
  rl_client* client;
  /* Without memory nothing is answered, and every limit is waited for. */
  snprintf(url, sizeof url, "%s?command_timeout=30ms&connect_timeout=30ms", server_url());
  client = rl_client_open(url, strlen(url), NULL, err);
  if (client == NULL && err != NULL) check_honest(rl_error_status(err), "open");
  rl_error_free(err);
  return client;
}

static rl_lease* acquire_by_request(rl_client* client, const rl_acquire_options* options) {
  const int64_t began_ms = now_ms();
  rl_request* request = rl_acquire_start(client, TEXT("request"), scenario_wait_ms(), options);
  rl_lease* lease;
  if (request == NULL) return NULL;
  check_acquired(rl_request_wait(request, 10000), began_ms, "request");
  CHECK(rl_request_message(request) != NULL);
  lease = rl_request_take_lease(request);
  rl_request_free(request);
  return lease;
}

static void use_lease(rl_client* client, rl_lease* lease) {
  rl_info* info = rl_inspect(client, TEXT("blocking"), NULL);
  rl_request* extension;
  char text[40];
  if (info != NULL) rl_info_text(info, RL_PART_HOLDER, 0, RL_FIELD_TOKEN, text, sizeof text);
  rl_info_free(info);
  check_honest(rl_extend(lease, SCENARIO_TTL_MS, NULL), "extend");
  extension = rl_extend_start(lease, SCENARIO_TTL_MS);
  if (extension != NULL) check_honest(rl_request_wait(extension, 10000), "extend request");
  rl_request_free(extension);
}

/* Memory may come back: what was refused for want of it can be asked for again. */
static void release_in_the_end(rl_lease* lease) {
  rl_status status = rl_release(lease, NULL);
  check_honest(status, "release");
  if (status == RL_E_NO_MEMORY) {
    /* A wait that had no memory to end sooner may have outlived the lease. */
    if (rl_lease_state(lease) == RL_LEASE_LOST && may_be_over()) return;
    CHECK_INT(RL_OK, rl_lease_check(lease, NULL));
    check_honest(rl_release(lease, NULL), "second release");
  }
}

/* The lock is free now, or a clean-up frees it. With one failure the waiter has it in time, or an
   honest end; as long as every call fails, it may have to wait. */
static void end_wait(rl_request* request) {
  const int is_patient = !atomic_load(&is_failing_on);
  const rl_status status = rl_request_wait(request, is_patient ? WAITER_LIMIT_MS : 20);
  if (status == RL_PENDING && !is_patient) {
    CHECK_INT(RL_CANCELLED, rl_request_cancel(request));
  } else {
    check_honest(status, "waiting request");
  }
}

/* Every kind of call once. Frees all it was given, whatever happened. */
static void run_scenario(void) {
  rl_acquire_options* options = rl_acquire_options_new();
  rl_client* client;
  rl_lease* first = NULL;
  rl_lease* second = NULL;
  rl_request* waiting = NULL;
  if (options == NULL) return;
  CHECK_INT(RL_OK, rl_acquire_options_set_ttl_ms(options, SCENARIO_TTL_MS));
  check_honest(rl_acquire_options_set_label(options, TEXT("a label that is no short string")),
               "label");
  client = open_for_scenario();
  if (client != NULL) {
    first = acquire_in_scenario(client, "blocking", options);
    second = acquire_by_request(client, options);
    waiting = rl_acquire_start(client, TEXT("blocking"), -1, options);
    if (first != NULL) use_lease(client, first);
    if (first != NULL) release_in_the_end(first);
    rl_lease_free(first);
    first = NULL;
    if (waiting != NULL) end_wait(waiting);
  }
  rl_acquire_options_free(options);
  rl_lease_free(second);
  rl_lease_free(first);
  rl_request_free(waiting);
  rl_client_close(client);
}

/* ---- readers and owners ---------------------------------------------------------------------- */

/* Up, in each of three ways, and down again. Without memory it reads on, and nothing is lost. */
static void climb(rl_lease* lease) {
  rl_request* waiting;
  const rl_status upgraded = rl_rw_upgrade(lease, 0, NULL);
  /* The limit of one try is the command_timeout, 30 ms. */
  if (upgraded != RL_TIMEOUT) check_honest(upgraded, "upgrade");
  check_honest(rl_rw_downgrade(lease, NULL), "downgrade");
  waiting = rl_rw_upgrade_start(lease, -1);
  if (waiting != NULL) end_wait(waiting);
  rl_request_free(waiting);
  check_honest(rl_rw_downgrade(lease, NULL), "downgrade");
  waiting = rl_rw_upgrade_start(lease, -1);
  if (waiting != NULL) rl_request_cancel(waiting);
  rl_request_free(waiting);
}

static void run_sharing_scenario(void) {
  rl_acquire_options* options = rl_acquire_options_new();
  rl_client* client = options == NULL ? NULL : open_for_scenario();
  rl_lease* leases[3] = {NULL, NULL, NULL};
  size_t i;
  if (client != NULL) {
    rl_acquire_options_set_ttl_ms(options, SCENARIO_TTL_MS);
    check_honest(rl_acquire_options_set_owner(options, TEXT("an owner, no short string")), "owner");
    leases[0] = rl_rw_acquire_read(client, TEXT("blocking"), scenario_wait_ms(), options, NULL);
    if (leases[0] != NULL) climb(leases[0]);
    check_honest(rl_acquire_options_set_reentrant(options, 1), "reentrant");
    leases[1] = rl_acquire(client, TEXT("request"), scenario_wait_ms(), options, NULL);
    leases[2] = rl_acquire(client, TEXT("request"), scenario_wait_ms(), options, NULL);
  }
  for (i = 0; i < TEST_COUNT(leases); ++i) rl_lease_free(leases[i]);
  rl_client_close(client);
  rl_acquire_options_free(options);
}

/* ---- an election ----------------------------------------------------------------------------- */

/* An observer that has begun gets the leader, or an honest answer. */
static void run_election_scenario(void) {
  rl_acquire_options* options = rl_acquire_options_new();
  rl_client* client = options == NULL ? NULL : open_for_scenario();
  rl_request* watched = NULL;
  rl_lease* term = NULL;
  if (client != NULL) {
    check_honest(rl_acquire_options_set(options, TEXT("id"), TEXT("an id, no short string"), NULL),
                 "id");
    watched = rl_leader_watch_start(client, TEXT("an election, no short string"), -1, -1);
    term = rl_acquire(client, TEXT("elected"), scenario_wait_ms(), options, NULL);
    rl_info_free(rl_leader(client, TEXT("elected"), NULL));
    if (watched != NULL) {
      end_wait(watched);
      rl_info_free(rl_request_take_info(watched));
    }
    rl_request_free(watched);
    watched = rl_leader_watch_start(client, TEXT("elected"), INT64_MAX / 4, -1);
  }
  rl_lease_free(term);
  rl_request_free(watched);
  rl_client_close(client);
  rl_acquire_options_free(options);
}

/* ---- from one process to another ------------------------------------------------------------- */

/* Without memory nothing is sent, and it is held as before. */
static rl_status detach(rl_lease* lease, char* token, size_t size) {
  rl_status status = rl_lease_detach(lease, token, size, NULL);
  check_honest(status, "detach");
  if (status != RL_E_NO_MEMORY) return status;
  CHECK_INT(RL_LEASE_HELD, rl_lease_state(lease));
  status = rl_lease_detach(lease, token, size, NULL);
  check_honest(status, "second detach");
  return status;
}

static void run_detach_scenario(void) {
  rl_error* err = rl_error_new();
  rl_client* client = open_for_scenario();
  rl_lease* leases[2] = {NULL, NULL};
  rl_request* request = NULL;
  char token[40], reply[64];
  rl_status status = RL_E_NO_MEMORY;
  if (client != NULL) leases[0] = rl_acquire(client, TEXT("left"), scenario_wait_ms(), NULL, NULL);
  if (leases[0] != NULL) status = detach(leases[0], token, sizeof token);
  if (status == RL_OK) {
    leases[1] = rl_lease_attach(client, TEXT("left"), token, strlen(token), 0, NULL, err);
    if (leases[1] == NULL && err != NULL) check_honest(rl_error_status(err), "attach");
  }
  if (leases[1] != NULL) request = rl_lease_detach_start(leases[1]);
  if (request != NULL) check_honest(rl_request_wait(request, 10000), "detach request");
  rl_request_free(request);
  rl_lease_free(leases[0]);
  rl_lease_free(leases[1]);
  rl_client_close(client);
  rl_error_free(err);
  /* What was handed over stays until its ttl ends. */
  atomic_store(&calls_left, 0);
  server_command(reply, sizeof reply, "FLUSHALL", NULL);
}

/* ---- a Redlock ------------------------------------------------------------------------------- */

static rl_client* open_redlock(void) {
  static const char* const set[][2] = {{"restart_guard", "off"},
                                       {"fenced", "yes"},
                                       {"command_timeout", "30ms"},
                                       {"connect_timeout", "30ms"}};
  rl_client_options* options = rl_client_options_new();
  rl_client* redlock = NULL;
  rl_error* err = rl_error_new();
  int is_set = options != NULL;
  size_t i;
  for (i = 0; is_set && i < TEST_COUNT(set); ++i) {
    const rl_status status = rl_client_options_set(options, set[i][0], strlen(set[i][0]), set[i][1],
                                                   strlen(set[i][1]), NULL);
    check_honest(status, set[i][0]);
    is_set = status == RL_OK;
  }
  if (is_set) redlock = rl_redlock_open(server_url(), strlen(server_url()), options, err);
  if (is_set && redlock == NULL && err != NULL) check_honest(rl_error_status(err), "open");
  rl_error_free(err);
  rl_client_options_free(options);
  return redlock;
}

/* With one node: what a call allocates is the same with more. */
static void run_redlock_scenario(void) {
  rl_acquire_options* options = rl_acquire_options_new();
  rl_client* redlock = options == NULL ? NULL : open_redlock();
  rl_lease* lease = NULL;
  rl_request* waiting = NULL;
  if (redlock != NULL) {
    rl_acquire_options_set_ttl_ms(options, SCENARIO_TTL_MS);
    check_honest(rl_client_connect(redlock, scenario_wait_ms(), NULL), "connect");
    rl_info_free(rl_client_info(redlock, NULL));
    lease = rl_redlock_acquire(redlock, TEXT("blocking"), scenario_wait_ms(), options, NULL);
    waiting = rl_redlock_acquire_start(redlock, TEXT("blocking"), -1, options);
    if (lease != NULL) check_honest(rl_extend(lease, SCENARIO_TTL_MS, NULL), "extend");
    if (lease != NULL) release_in_the_end(lease);
    if (waiting != NULL) end_wait(waiting);
  }
  rl_lease_free(lease);
  rl_request_free(waiting);
  rl_redlock_close(redlock);
  rl_acquire_options_free(options);
}

/* ---- several names --------------------------------------------------------------------------- */

static rl_names* both_names(void) {
  rl_names* names = rl_names_new();
  if (names == NULL) return NULL;
  check_honest(rl_names_add(names, TEXT("request"), RL_MODE_WRITE, NULL), "add");
  check_honest(rl_names_add(names, TEXT("blocking"), RL_MODE_WRITE, NULL), "add");
  return names;
}

static void run_names_scenario(void) {
  rl_acquire_options* options = rl_acquire_options_new();
  rl_names* names = both_names();
  rl_client* client = options == NULL || names == NULL ? NULL : open_for_scenario();
  rl_lease* lease = NULL;
  rl_request* waiting = NULL;
  if (client != NULL) {
    rl_acquire_options_set_ttl_ms(options, SCENARIO_TTL_MS);
    lease = rl_acquire_all(client, names, scenario_wait_ms(), options, NULL);
    waiting = rl_acquire_all_start(client, names, -1, options);
    if (lease != NULL) check_honest(rl_extend(lease, SCENARIO_TTL_MS, NULL), "extend");
    if (lease != NULL) release_in_the_end(lease);
    if (waiting != NULL) end_wait(waiting);
  }
  rl_lease_free(lease);
  rl_request_free(waiting);
  rl_client_close(client);
  rl_names_free(names);
  rl_acquire_options_free(options);
}

/* ---- threads that cannot be started ---------------------------------------------------------- */

static void run_without_a_thread(void) { use_with_threads(open_for_scenario(), 0); }

/* The client's own thread, and none to connect with. */
static void run_with_one_thread(void) { use_with_threads(open_for_scenario(), 1); }

static void run_redlock_with_one_thread(void) { use_with_threads(open_redlock(), 1); }

/* ---- queues ---------------------------------------------------------------------------------- */

enum { WATCH_COUNT = 3, POSTED_TAG = 7 };

static int bit_of(int64_t tag) { return 1 << tag; }

/* @return the bit of `tag`, if its coming was promised. */
static int promise_of(rl_status status, int64_t tag) {
  CHECK(status == RL_OK || status == RL_E_NO_MEMORY);
  return status == RL_OK ? bit_of(tag) : 0;
}

/* What was promised comes, each tag once, and nothing else does. */
static void take_tags(rl_queue* queue, int promised) {
  while (promised != 0) {
    const int64_t tag = rl_queue_next(queue, 10000);
    if (!CHECK(tag > 0 && tag <= POSTED_TAG && (promised & bit_of(tag)) != 0)) break;
    promised &= ~bit_of(tag);
  }
  CHECK_INT(0, rl_queue_next(queue, 0));
}

static int start_watched(rl_client* client, rl_queue* queue, const rl_acquire_options* options,
                         rl_request** requests) {
  static const char* const names[] = {"blocking", "request", "blocking"};
  int promised = 0;
  int i;
  for (i = 0; i < WATCH_COUNT; ++i) {
    requests[i] = rl_acquire_start(client, names[i], strlen(names[i]), i < 2 ? 60 : 0, options);
    if (requests[i] == NULL) continue;
    promised |= promise_of(rl_request_watch(requests[i], queue, i + 1), i + 1);
  }
  return promised;
}

/* By a release, or, when there is no memory for that, left to itself: each is told. */
static void end_leases(rl_queue* queue, rl_lease** leases) {
  int promised = 0;
  int i;
  for (i = 0; i < WATCH_COUNT; ++i) {
    const int64_t tag = WATCH_COUNT + 1 + i;
    if (leases[i] != NULL) promised |= promise_of(rl_lease_watch(leases[i], queue, tag), tag);
  }
  for (i = 0; i < WATCH_COUNT; ++i) {
    if (leases[i] == NULL) continue;
    if (rl_release(leases[i], NULL) == RL_E_NO_MEMORY) rl_lease_detach(leases[i], NULL, 0, NULL);
  }
  take_tags(queue, promised);
  for (i = 0; i < WATCH_COUNT; ++i) rl_lease_free(leases[i]);
}

static void use_queue(rl_client* client, rl_queue* queue, const rl_acquire_options* options) {
  rl_request* requests[WATCH_COUNT];
  rl_lease* leases[WATCH_COUNT] = {NULL};
  int promised = start_watched(client, queue, options, requests);
  int i;
  take_tags(queue, promised);
  take_tags(queue, promise_of(rl_queue_post(queue, POSTED_TAG), POSTED_TAG));
  for (i = 0; i < WATCH_COUNT; ++i) {
    if ((promised & bit_of(i + 1)) != 0) CHECK(rl_request_status(requests[i]) != RL_PENDING);
    leases[i] = rl_request_take_lease(requests[i]);
    rl_request_free(requests[i]);
  }
  end_leases(queue, leases);
}

static void run_queue_scenario(void) {
  rl_acquire_options* options = rl_acquire_options_new();
  rl_error* err = rl_error_new();
  rl_queue* queue = rl_queue_new(err);
  rl_client* client = NULL;
  if (queue == NULL && err != NULL) CHECK_INT(RL_E_NO_MEMORY, rl_error_status(err));
  if (options != NULL && queue != NULL) client = open_for_scenario();
  if (client != NULL) {
    CHECK_INT(RL_OK, rl_acquire_options_set_ttl_ms(options, SCENARIO_TTL_MS));
    use_queue(client, queue, options);
  }
  rl_queue_free(queue);
  rl_client_close(client);
  rl_error_free(err);
  rl_acquire_options_free(options);
}

/* ---- recalls --------------------------------------------------------------------------------- */

/* A recall may be lost, also for want of memory: one that was noted is told. */
static void recall_watched(rl_client* client, rl_queue* queue, rl_lease* lease) {
  static const char reason[] = "a reason that is no short string";
  const int promised = promise_of(rl_lease_watch_recall(lease, queue, POSTED_TAG), POSTED_TAG);
  rl_request* request;
  check_honest(rl_recall(client, TEXT("blocking"), TEXT(reason), NULL, NULL), "recall");
  request = rl_recall_start(client, TEXT("recalled, no short string"), TEXT(reason));
  if (request != NULL) end_wait(request);
  CHECK_INT(0, rl_recall_heard(request));
  rl_request_free(request);
  check_honest(rl_extend(lease, SCENARIO_TTL_MS, NULL), "extend");
  if (rl_lease_recall_count(lease) > 0) take_tags(queue, promised);
  rl_lease_recall_reason(lease, NULL, 0);
}

static void run_recall_scenario(void) {
  rl_acquire_options* options = rl_acquire_options_new();
  rl_queue* queue = options == NULL ? NULL : rl_queue_new(NULL);
  rl_client* client = queue == NULL ? NULL : open_for_scenario();
  rl_lease* lease = NULL;
  if (client != NULL) {
    rl_acquire_options_set_ttl_ms(options, SCENARIO_TTL_MS);
    lease = acquire_in_scenario(client, "blocking", options);
  }
  if (lease != NULL) recall_watched(client, queue, lease);
  rl_lease_free(lease);
  rl_queue_free(queue);
  rl_client_close(client);
  rl_acquire_options_free(options);
}

/* ---- each call in turn ----------------------------------------------------------------------- */

static void (*const scenarios[])(void) = {
    run_scenario,         run_sharing_scenario, run_queue_scenario,    run_detach_scenario,
    run_redlock_scenario, run_names_scenario,   run_election_scenario, run_recall_scenario};

static void one_call_fails(void) {
  rl_client* looker = server_client();
  size_t i;
  for (i = 0; i < TEST_COUNT(scenarios); ++i) fail_at_each(scenarios[i], 1, 0, looker, NULL);
  rl_client_close(looker);
}

static void all_calls_fail_from_one_on(void) {
  rl_client* looker = server_client();
  size_t i;
  for (i = 0; i < TEST_COUNT(scenarios); ++i) fail_at_each(scenarios[i], 2, 1, looker, NULL);
  rl_client_close(looker);
}

/* With every call failing first: what is only built once must not have been built by then. */
static void calls_fail_without_a_thread(void) {
  static void (*const with_few[])(void) = {run_without_a_thread, run_with_one_thread,
                                           run_redlock_with_one_thread};
  rl_client* looker = server_client();
  size_t i;
  for (i = 0; i < TEST_COUNT(with_few); ++i) {
    atomic_store(&refused_thread_count, 0);
    fail_at_each(with_few[i], 1, 1, looker, NULL);
    fail_at_each(with_few[i], 1, 0, looker, NULL);
    CHECK(atomic_load(&refused_thread_count) > 0);
  }
  rl_client_close(looker);
}

/* Lose a lock, and with it write a line to the log. */
static rl_lease* lose_one(rl_client* client, const rl_acquire_options* options, long failing_call) {
  rl_lease* lease = NULL;
  /* On a busy machine the answer may take longer than the lease. */
  EVENTUALLY((lease = rl_acquire(client, TEXT("logged"), 2000, options, NULL)) != NULL, 10000);
  atomic_store(&calls_left, failing_call);
  EVENTUALLY(rl_lease_state(lease) == RL_LEASE_LOST, 10000);
  EVENTUALLY(server_number("EXISTS", "logged", NULL) == 0, 10000);
  atomic_store(&calls_left, 0);
  return lease;
}

/* A lease that is freed before the library's thread has noticed the loss is not logged as lost. */
static void lose_one_with_tag(rl_client* client, const rl_acquire_options* options,
                              rl_queue* queue) {
  rl_lease* lease = lose_one(client, options, 0);
  CHECK_INT(1, rl_queue_next(queue, 20000));
  rl_lease_free(lease);
}

/* The words of a line, and its tag, may fail for want of memory; those of the next must come. */
static void the_log_goes_on_being_watched(void) {
  const char* url = server_url();
  rl_client* client = rl_client_open(url, strlen(url), NULL, NULL);
  rl_acquire_options* options = rl_acquire_options_new();
  long nth;
  rl_acquire_options_set_ttl_ms(options, 30);
  rl_acquire_options_set_renew(options, 0);
  atomic_store(&is_failing_on, 0);
  for (nth = 1; nth <= 12; ++nth) {
    rl_queue* queue = rl_queue_new(NULL);
    empty_log(client);
    CHECK_INT(RL_OK, rl_client_log_watch(client, RL_LOG_ERROR, queue, 1));
    rl_lease_free(lose_one(client, options, nth));
    {
      rl_lease* lease = lose_one(client, options, 0);
      if (!CHECK_INT(1, rl_queue_next(queue, 20000))) fprintf(stderr, "  at call %ld\n", nth);
      rl_lease_free(lease);
    }
    CHECK_INT(RL_OK, rl_client_log_watch(client, RL_LOG_ERROR, NULL, 0));
    rl_queue_free(queue);
  }
  rl_acquire_options_free(options);
  rl_client_close(client);
}

/* Handlers of the library run inside the host's fork(). */
static void a_fork_needs_no_memory(void) {
  rl_client* client = rl_client_open(server_url(), strlen(server_url()), NULL, NULL);
  rl_acquire_options* options = rl_acquire_options_new();
  int status = -1;
  pid_t pid;
  rl_acquire_options_set_ttl_ms(options, 30);
  rl_acquire_options_set_renew(options, 0);
  rl_lease_free(lose_one(client, options, 0));
  atomic_store(&is_failing_on, 1);
  atomic_store(&calls_left, 1);
  pid = fork();
  if (pid == 0) {
    char line[1024];
    const int is_empty = rl_client_log_next(client, line, sizeof line) == 0;
    atomic_store(&calls_left, 0);
    _exit(is_empty && rl_client_log_next(client, line, sizeof line) == 0 ? 0 : 1);
  }
  atomic_store(&calls_left, 0);
  atomic_store(&is_failing_on, 0);
  if (CHECK(pid > 0)) CHECK_INT(pid, waitpid(pid, &status, 0));
  CHECK_INT(0, status);
  rl_acquire_options_free(options);
  rl_client_close(client);
}

static void a_log_watch_that_is_refused_changes_nothing(void) {
  const char* url = server_url();
  rl_client* client = rl_client_open(url, strlen(url), NULL, NULL);
  rl_acquire_options* options = rl_acquire_options_new();
  rl_status status = RL_E_NO_MEMORY;
  long nth;
  rl_acquire_options_set_ttl_ms(options, 30);
  rl_acquire_options_set_renew(options, 0);
  for (nth = 1; nth < 20 && status != RL_OK; ++nth) {
    rl_queue* first = rl_queue_new(NULL);
    rl_queue* second = rl_queue_new(NULL);
    empty_log(client);
    CHECK_INT(RL_OK, rl_client_log_watch(client, RL_LOG_ERROR, first, 1));
    lose_one_with_tag(client, options, first);
    atomic_store(&calls_left, nth);
    status = rl_client_log_watch(client, RL_LOG_ERROR, second, 2);
    atomic_store(&calls_left, 0);
    CHECK_INT(status == RL_OK ? 2 : 0, rl_queue_next(second, 0));
    empty_log(client);
    lose_one_with_tag(client, options, first);
    CHECK_INT(status == RL_OK ? 2 : 0, rl_queue_next(second, status == RL_OK ? 20000 : 0));
    CHECK_INT(RL_OK, rl_client_log_watch(client, RL_LOG_ERROR, NULL, 0));
    rl_queue_free(first);
    rl_queue_free(second);
  }
  CHECK(nth > 2 && nth < 20);
  rl_acquire_options_free(options);
  rl_client_close(client);
}

static const struct test tests[] = {
    {"calls_fail_without_a_thread", calls_fail_without_a_thread},
    {"one_call_fails", one_call_fails},
    {"all_calls_fail_from_one_on", all_calls_fail_from_one_on},
    {"the_log_goes_on_being_watched", the_log_goes_on_being_watched},
    {"a_fork_needs_no_memory", a_fork_needs_no_memory},
    {"a_log_watch_that_is_refused_changes_nothing", a_log_watch_that_is_refused_changes_nothing},
};

int main(int argc, char** argv) {
  server_url();
  return run_tests(tests, TEST_COUNT(tests), argc, argv);
}
