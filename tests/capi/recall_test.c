/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Goal: a holder that is asked to finish hears it, once, with the reason. Method: two clients, a
 * queue, a forked process and threads. The kinds of locks are in tests/scripts and conformance.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calls.h"
#include "harness.h"
#include "redlatch/redlatch.h"
#include "server.h"

enum { THREAD_COUNT = 64, PATIENCE_MS = 30000, TAG = 7 };

static rl_client* clients[2];

/* By a client of its own: one client sends at most one recall a second for a name. */
static int64_t recall(const char* name, const char* reason) {
  rl_client* client = server_client();
  int64_t heard = -1;
  CHECK_INT(RL_OK, rl_recall(client, name, strlen(name), reason, strlen(reason), &heard, NULL));
  rl_client_close(client);
  return heard;
}

static void check_reason(const char* expected, const rl_lease* lease) {
  char reason[RL_MAX_REASON_BYTES + 1];
  CHECK_INT(strlen(expected), rl_lease_recall_reason(lease, reason, sizeof reason));
  CHECK(strcmp(expected, reason) == 0);
}

static void the_event_comes_once(void) {
  rl_lease* lease = rl_acquire(clients[0], TEXT("once"), 0, NULL, NULL);
  rl_queue* queue = rl_queue_new(NULL);
  rl_event event;
  REQUIRE(lease != NULL && queue != NULL);
  CHECK_INT(0, rl_lease_recall_count(lease));
  check_reason("", lease);
  CHECK_INT(RL_OK, rl_lease_watch_recall(lease, queue, TAG));
  CHECK_INT(0, rl_queue_next(queue, 0));
  CHECK_INT(1, recall("once", "deploy"));
  CHECK_INT(RL_EVENT_RECALL, rl_queue_next_event(queue, PATIENCE_MS, &event));
  CHECK(event.tag == TAG && event.handle == lease && event.status == RL_OK);
  CHECK_INT(1, rl_lease_recall_count(lease));
  check_reason("deploy", lease);
  CHECK_INT(1, recall("once", "a\nb\x01"));
  CHECK_INT(RL_OK, rl_extend(lease, 30000, NULL)); /* Its answer comes behind the message. */
  CHECK_INT(2, rl_lease_recall_count(lease));
  check_reason("a b ", lease);
  CHECK_INT(0, rl_queue_next(queue, 0));
  CHECK_INT(RL_OK, rl_lease_watch_recall(lease, queue, TAG + 1)); /* It has come already. */
  CHECK_INT(TAG + 1, rl_queue_next(queue, 0));
  give_back(lease);
  rl_queue_free(queue);
}

static void a_watch_ends_with_the_lease(void) {
  rl_lease* lease = rl_acquire(clients[0], TEXT("ended"), 0, NULL, NULL);
  rl_queue* queue = rl_queue_new(NULL);
  REQUIRE(lease != NULL && queue != NULL);
  CHECK_INT(RL_OK, rl_lease_watch_recall(lease, queue, TAG));
  CHECK_INT(RL_OK, rl_lease_watch_recall(lease, NULL, 0));
  CHECK_INT(RL_OK, rl_lease_watch_recall(lease, queue, TAG));
  CHECK_INT(RL_OK, rl_release(lease, NULL));
  CHECK_INT(0, recall("ended", ""));
  CHECK_INT(0, rl_queue_next(queue, 0));
  CHECK_INT(RL_OK, rl_lease_watch_recall(lease, queue, TAG));
  CHECK_INT(0, rl_queue_next(queue, 0));
  rl_lease_free(lease);
  rl_queue_free(queue);
}

static void all_names_of_a_lease_are_asked_for(void) {
  rl_names* names = rl_names_new();
  rl_queue* queue = rl_queue_new(NULL);
  rl_lease* lease;
  rl_names_add(names, TEXT("first"), RL_MODE_WRITE, NULL);
  rl_names_add(names, TEXT("second"), RL_MODE_READ, NULL);
  lease = rl_acquire_all(clients[0], names, 0, NULL, NULL);
  REQUIRE(lease != NULL && queue != NULL);
  CHECK_INT(RL_OK, rl_lease_watch_recall(lease, queue, TAG));
  CHECK_INT(1, recall("second", "why"));
  CHECK_INT(TAG, rl_queue_next(queue, PATIENCE_MS));
  check_reason("why", lease);
  give_back(lease);
  rl_names_free(names);
  rl_queue_free(queue);
}

static void one_is_sent_in_a_second(void) {
  rl_lease* lease;
  int64_t heard = -1;
  CHECK_INT(RL_OK, rl_recall(clients[1], TEXT("rate"), NULL, 0, &heard, NULL));
  CHECK_INT(0, heard);
  lease = rl_acquire(clients[0], TEXT("rate"), 0, NULL, NULL);
  REQUIRE(lease != NULL);
  CHECK_INT(RL_OK, rl_recall(clients[1], TEXT("rate"), NULL, 0, &heard, NULL));
  CHECK(heard == 0 || heard == 1); /* 1: on a machine that has stood still for a second. */
  give_back(lease);
}

static void it_is_heard_after_a_broken_connection(void) {
  rl_client* client = client_with("client_name=broken");
  rl_lease* lease = rl_acquire(client, TEXT("broken"), 0, NULL, NULL);
  rl_queue* queue = rl_queue_new(NULL);
  REQUIRE(lease != NULL && queue != NULL);
  CHECK_INT(RL_OK, rl_lease_watch_recall(lease, queue, TAG));
  server_number("CLIENT", "KILL", "TYPE", "pubsub", NULL);
  EVENTUALLY(recall("broken", "") == 1, PATIENCE_MS);
  CHECK_INT(TAG, rl_queue_next(queue, PATIENCE_MS));
  give_back(lease);
  rl_queue_free(queue);
  rl_client_close(client);
}

static void also_with_resp2(void) {
  rl_client* client = client_with("protocol=2");
  rl_lease* lease = rl_acquire(client, TEXT("resp2"), 0, NULL, NULL);
  rl_queue* queue = rl_queue_new(NULL);
  REQUIRE(lease != NULL && queue != NULL);
  CHECK_INT(RL_OK, rl_lease_watch_recall(lease, queue, TAG));
  CHECK_INT(1, recall("resp2", "two"));
  CHECK_INT(TAG, rl_queue_next(queue, PATIENCE_MS));
  give_back(lease);
  rl_queue_free(queue);
  rl_client_close(client);
}

static void* hold(void* argument) {
  const char* name = argument;
  rl_lease* lease = rl_acquire(clients[0], name, strlen(name), PATIENCE_MS, NULL, NULL);
  rl_queue* queue = rl_queue_new(NULL);
  rl_client* client = clients[1];
  int64_t heard = 0;
  if (!CHECK(lease != NULL && queue != NULL)) return NULL;
  CHECK_INT(RL_OK, rl_lease_watch_recall(lease, queue, TAG));
  CHECK_INT(RL_OK, rl_recall(client, name, strlen(name), name, strlen(name), &heard, NULL));
  CHECK_INT(1, heard);
  CHECK_INT(TAG, rl_queue_next(queue, PATIENCE_MS));
  check_reason(name, lease);
  give_back(lease);
  rl_queue_free(queue);
  return NULL;
}

static void many_threads_hear_it(void) {
  static char names[THREAD_COUNT][16];
  pthread_t threads[THREAD_COUNT];
  size_t i;
  for (i = 0; i < THREAD_COUNT; i++) {
    snprintf(names[i], sizeof names[i], "thread %zu", i);
    REQUIRE(pthread_create(&threads[i], NULL, hold, names[i]) == 0);
  }
  for (i = 0; i < THREAD_COUNT; i++) pthread_join(threads[i], NULL);
}

static void what_is_wrong_is_refused(void) {
  static const char long_reason[RL_MAX_REASON_BYTES + 1] = {'r'};
  rl_error* err = rl_error_new();
  rl_lease* lease = rl_acquire(clients[0], TEXT("wrong"), 0, NULL, NULL);
  rl_queue* queue = rl_queue_new(NULL);
  rl_request* request;
  int64_t heard = -1;
  CHECK_INT(RL_E_INVALID, rl_recall(NULL, TEXT("x"), NULL, 0, &heard, err));
  CHECK_INT(0, heard);
  CHECK_INT(RL_E_INVALID, rl_recall(clients[0], NULL, 1, NULL, 0, NULL, err));
  CHECK_INT(RL_E_INVALID, rl_recall(clients[0], TEXT("x"), NULL, 1, NULL, err));
  CHECK_INT(RL_E_INVALID,
            rl_recall(clients[0], TEXT("x"), long_reason, sizeof long_reason, NULL, err));
  CHECK_HAS("reason must be at most 128 bytes (got 129 bytes)", rl_error_message(err));
  CHECK_INT(RL_E_INVALID, rl_lease_watch_recall(NULL, queue, TAG));
  CHECK_INT(RL_E_INVALID, rl_lease_watch_recall(lease, queue, 0));
  CHECK_INT(0, rl_lease_recall_count(NULL));
  CHECK_INT(0, rl_lease_recall_reason(NULL, NULL, 0));
  CHECK_INT(0, rl_recall_heard(NULL));
  request = rl_recall_start(clients[1], TEXT("wrong"), TEXT("why"));
  CHECK_INT(RL_OK, rl_request_wait(request, -1));
  CHECK_INT(1, rl_recall_heard(request));
  rl_request_free(request);
  give_back(lease);
  rl_queue_free(queue);
  rl_error_free(err);
}

static void a_child_hears_nothing(void) {
  rl_lease* lease = rl_acquire(clients[0], TEXT("forked"), 0, NULL, NULL);
  rl_queue* queue = rl_queue_new(NULL);
  int status = -1;
  pid_t child;
  REQUIRE(lease != NULL && queue != NULL);
  child = fork();
  if (child == 0) {
    int is_good = rl_recall(clients[0], TEXT("forked"), NULL, 0, NULL, NULL) == RL_E_FORKED;
    is_good = is_good && rl_lease_watch_recall(lease, NULL, 0) == RL_E_FORKED;
    is_good = is_good && rl_lease_recall_count(lease) == 0;
    _exit(is_good ? 0 : 1);
  }
  REQUIRE(child > 0 && waitpid(child, &status, 0) == child);
  CHECK_INT(0, status);
  give_back(lease);
  rl_queue_free(queue);
}

static void a_redlock_has_no_recalls(void) {
  rl_client_options* options = rl_client_options_new();
  const char* url = server_url();
  rl_client* client;
  rl_lease* lease;
  CHECK_INT(RL_OK, rl_client_options_set(options, TEXT("durable"), TEXT("yes"), NULL));
  client = rl_redlock_open(url, strlen(url), options, NULL);
  rl_client_options_free(options);
  REQUIRE(client != NULL);
  CHECK_INT(RL_E_UNSUPPORTED, rl_recall(client, TEXT("quorum"), NULL, 0, NULL, NULL));
  lease = rl_acquire(client, TEXT("quorum"), PATIENCE_MS, NULL, NULL);
  REQUIRE(lease != NULL);
  CHECK_INT(RL_E_UNSUPPORTED, rl_lease_watch_recall(lease, NULL, 0));
  give_back(lease);
  rl_client_close(client);
}

static const struct test tests[] = {
    {"the_event_comes_once", the_event_comes_once},
    {"a_watch_ends_with_the_lease", a_watch_ends_with_the_lease},
    {"all_names_of_a_lease_are_asked_for", all_names_of_a_lease_are_asked_for},
    {"one_is_sent_in_a_second", one_is_sent_in_a_second},
    {"it_is_heard_after_a_broken_connection", it_is_heard_after_a_broken_connection},
    {"also_with_resp2", also_with_resp2},
    {"many_threads_hear_it", many_threads_hear_it},
    {"what_is_wrong_is_refused", what_is_wrong_is_refused},
    {"a_child_hears_nothing", a_child_hears_nothing},
    {"a_redlock_has_no_recalls", a_redlock_has_no_recalls},
};

int main(int argc, char** argv) {
  int failed;
  clients[0] = server_client();
  clients[1] = server_client();
  failed = run_tests(tests, TEST_COUNT(tests), argc, argv);
  rl_client_close(clients[0]);
  rl_client_close(clients[1]);
  return failed;
}
