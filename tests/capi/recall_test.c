/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Goal: the holders of a lock hear that another client asks them to finish: once, with the reason,
 * and with nothing taken from them. Method: two clients, queues that are watched, and 64 threads.
 * The script is tested in tests/scripts/test_recall.py, the client's steps in
 * tests/unit/recall_test.cc.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "calls.h"
#include "harness.h"
#include "redlatch/redlatch.h"
#include "server.h"

enum { THREAD_COUNT = 64, PATIENCE_MS = 30000, TAG = 7 };

static rl_client* clients[2];
static rl_queue* queue;

static rl_lease* hold(rl_client* client, const char* name) {
  rl_lease* lease = rl_acquire(client, name, strlen(name), PATIENCE_MS, NULL, NULL);
  CHECK(lease != NULL);
  return lease;
}

/* @return how many holders have heard it. */
static int64_t recall(rl_client* client, const char* name, const char* reason) {
  rl_error* err = rl_error_new();
  int64_t heard = -1;
  if (!CHECK_INT(RL_OK,
                 rl_recall(client, name, strlen(name), reason, strlen(reason), &heard, err))) {
    fprintf(stderr, "%s\n", rl_error_message(err));
  }
  rl_error_free(err);
  return heard;
}

static void watch(rl_lease* lease, int64_t tag) {
  CHECK_INT(RL_OK, rl_lease_watch_recall(lease, queue, tag));
}

static void check_event(rl_lease* lease, int64_t tag) {
  rl_event event;
  CHECK_INT(RL_EVENT_RECALL, rl_queue_next_event(queue, PATIENCE_MS, &event));
  CHECK_INT(tag, event.tag);
  CHECK_INT(RL_OK, event.status);
  CHECK(event.handle == lease);
}

/* The answer to an extension follows what the server has sent before. */
static void check_count(rl_lease* lease, int64_t count) {
  CHECK_INT(RL_OK, rl_extend(lease, 30000, NULL));
  CHECK_INT(count, rl_lease_recall_count(lease));
}

static void check_no_event(rl_lease* lease, int64_t count) {
  check_count(lease, count);
  CHECK_INT(0, rl_queue_next(queue, 0));
}

static void check_reason(const rl_lease* lease, const char* reason) {
  char text[RL_MAX_REASON_BYTES + 1] = "none";
  CHECK_INT(strlen(reason), rl_lease_recall_reason(lease, text, sizeof text));
  CHECK(strcmp(reason, text) == 0);
}

/* ---- hearing --------------------------------------------------------------------------------- */

static void another_client_is_heard(void) {
  rl_lease* lease = hold(clients[0], "heard");
  watch(lease, TAG);
  CHECK_INT(0, rl_lease_recall_count(lease));
  check_reason(lease, "");
  CHECK_INT(1, recall(clients[1], "heard", "deployment of 1.2"));
  check_event(lease, TAG);
  CHECK_INT(1, rl_lease_recall_count(lease));
  check_reason(lease, "deployment of 1.2");
  /* Nothing is forced. */
  CHECK_INT(RL_OK, rl_lease_check(lease, NULL));
  CHECK(!is_free("heard"));
  give_back(lease);
}

static void the_own_client_is_heard(void) {
  rl_lease* lease = hold(clients[0], "own");
  watch(lease, TAG);
  CHECK_INT(1, recall(clients[0], "own", ""));
  check_event(lease, TAG);
  check_reason(lease, "");
  give_back(lease);
}

static void the_event_comes_once_and_all_recalls_count(void) {
  rl_lease* lease = hold(clients[0], "once");
  watch(lease, TAG);
  recall(clients[0], "once", "first");
  check_event(lease, TAG);
  recall(clients[1], "once", "second");
  check_no_event(lease, 2);
  check_reason(lease, "second");
  give_back(lease);
  /* The next acquisition has heard nothing. */
  lease = hold(clients[0], "once");
  watch(lease, TAG);
  check_no_event(lease, 0);
  give_back(lease);
}

static void a_watch_that_comes_late_posts_at_once(void) {
  rl_lease* lease = hold(clients[0], "late");
  recall(clients[1], "late", "early");
  /* Without a watch it is heard with the next answer. */
  check_count(lease, 1);
  check_reason(lease, "early");
  watch(lease, TAG);
  CHECK_INT(TAG, rl_queue_next(queue, 0));
  CHECK_INT(0, rl_queue_next(queue, 0));
  give_back(lease);
}

static void a_watch_is_replaced_and_removed(void) {
  rl_lease* lease = hold(clients[0], "replaced");
  watch(lease, 1);
  watch(lease, 2);
  recall(clients[0], "replaced", "");
  check_event(lease, 2);
  check_no_event(lease, 1);
  watch(lease, 3); /* Watched again: it has been asked. */
  CHECK_INT(3, rl_queue_next(queue, 0));
  give_back(lease);
  lease = hold(clients[0], "removed");
  watch(lease, 4);
  CHECK_INT(RL_OK, rl_lease_watch_recall(lease, NULL, 0));
  recall(clients[1], "removed", "");
  check_no_event(lease, 1);
  give_back(lease);
}

static void the_end_of_the_lease_drops_the_watch(void) {
  char token[RL_TOKEN_BYTES + 1];
  rl_lease* lease = hold(clients[0], "ends");
  watch(lease, 1);
  CHECK_INT(RL_OK, rl_lease_watch(lease, queue, 2));
  CHECK_INT(RL_OK, rl_release(lease, NULL));
  CHECK_INT(2, rl_queue_next(queue, PATIENCE_MS));
  CHECK_INT(0, rl_queue_next(queue, 0));
  CHECK_INT(RL_OK, rl_lease_watch_recall(lease, queue, 3)); /* It has ended: no event. */
  CHECK_INT(0, rl_queue_next(queue, 0));
  rl_lease_free(lease);
  lease = hold(clients[0], "freed");
  watch(lease, 4);
  rl_lease_free(lease);
  EVENTUALLY(is_free("freed"), PATIENCE_MS);
  CHECK_INT(0, recall(clients[1], "freed", ""));
  CHECK_INT(0, rl_queue_next(queue, 0));
  lease = hold(clients[0], "handed");
  watch(lease, 5);
  CHECK_INT(RL_OK, rl_lease_detach(lease, token, sizeof token, NULL));
  recall(clients[1], "handed", "");
  rl_lease_free(lease);
  check_attachable(clients[1], "handed", token);
  CHECK_INT(0, rl_queue_next(queue, 0));
}

/* Queue, lease and client in each order: nothing is leaked, and nothing is used after its end. */
static void watches_do_not_keep_what_was_freed(void) {
  static const char* const orders[] = {"qlc", "lqc", "cql", "clq", "qcl"};
  size_t i;
  for (i = 0; i < TEST_COUNT(orders); ++i) {
    rl_client* client = server_client();
    rl_queue* own = rl_queue_new(NULL);
    rl_lease* lease = hold(client, "orders");
    const char* at;
    CHECK_INT(RL_OK, rl_lease_watch_recall(lease, own, 1));
    if (i % 2 == 1) CHECK_INT(1, recall(clients[i % 4 / 2], "orders", "free"));
    for (at = orders[i]; *at != '\0'; ++at) {
      if (*at == 'q') rl_queue_free(own);
      if (*at == 'l') rl_lease_free(lease);
      if (*at == 'c') rl_client_close(client);
    }
    EVENTUALLY(is_free("orders"), PATIENCE_MS);
  }
}

/* ---- holders --------------------------------------------------------------------------------- */

static void no_holder_is_no_error(void) {
  rl_request* request;
  CHECK_INT(0, recall(clients[1], "nobody", "x"));
  CHECK_INT(1, server_number("EVAL", "redis.call('SET', KEYS[1], 'foreign', 'PX', 60000) return 1",
                             "1", "foreign", NULL));
  CHECK_INT(0, recall(clients[1], "foreign", "x"));
  CHECK(!is_free("foreign"));
  request = rl_recall_start(clients[1], TEXT("nobody2"), TEXT("x"));
  CHECK_INT(RL_OK, rl_request_wait(request, -1));
  CHECK_INT(0, rl_recall_heard(request));
  rl_request_free(request);
}

static void a_waiter_hears_nothing(void) {
  rl_lease* lease = hold(clients[0], "waits");
  rl_request* waiting = rl_acquire_start(clients[1], TEXT("waits"), -1, NULL);
  EVENTUALLY(waiting_count(clients[0], "waits") == 1, PATIENCE_MS);
  watch(lease, 1);
  CHECK_INT(1, recall(clients[1], "waits", "mine"));
  check_event(lease, 1);
  give_back(lease);
  CHECK_INT(RL_OK, rl_request_wait(waiting, -1));
  lease = rl_request_take_lease(waiting);
  CHECK_INT(0, rl_lease_recall_count(lease));
  rl_request_free(waiting);
  give_back(lease);
}

static void all_of_several_names_are_one_lease(void) {
  static const char* const names[] = {"part-1", "part-2", "part-3"};
  rl_names* all = rl_names_new();
  rl_lease* lease;
  size_t i;
  for (i = 0; i < TEST_COUNT(names); ++i) {
    rl_names_add(all, names[i], strlen(names[i]), i == 2 ? RL_MODE_READ : RL_MODE_WRITE, NULL);
  }
  lease = rl_acquire_all(clients[0], all, PATIENCE_MS, NULL, NULL);
  REQUIRE(lease != NULL);
  watch(lease, TAG);
  CHECK_INT(1, recall(clients[1], "part-2", "one of them"));
  check_event(lease, TAG);
  CHECK_INT(1, recall(clients[1], "part-3", "another one"));
  check_count(lease, 2);
  check_reason(lease, "another one");
  CHECK_INT(0, rl_queue_next(queue, 0));
  CHECK_INT(RL_OK, rl_lease_check(lease, NULL));
  give_back(lease);
  rl_names_free(all);
}

static rl_lease* hold_as(rl_client* client, const char* name, const char* option,
                         const char* value) {
  rl_acquire_options* options = rl_acquire_options_new();
  rl_lease* lease;
  CHECK_INT(RL_OK,
            rl_acquire_options_set(options, option, strlen(option), value, strlen(value), NULL));
  lease = rl_acquire(client, name, strlen(name), PATIENCE_MS, options, NULL);
  rl_acquire_options_free(options);
  CHECK(lease != NULL);
  return lease;
}

/* Its name is written, and no renewal is near: nothing else makes the client read for 20 s. */
static void a_quiet_client_hears_it(void) {
  enum { QUIET_MS = 10000, CID_SIZE = 22 };
  rl_client* client = server_client();
  rl_lease* lease = hold_as(client, "quiet", "ttl", "10m");
  char key[RL_TOKEN_BYTES + 5] = "rl1:";
  rl_lease_token(lease, key + 4, sizeof key - 4);
  key[4 + CID_SIZE] = '\0';
  EVENTUALLY(server_number("EXISTS", key, NULL) == 1, PATIENCE_MS);
  watch(lease, TAG);
  CHECK_INT(RL_OK, rl_extend(lease, 600000, NULL));
  CHECK_INT(0, rl_queue_next(queue, 20));
  CHECK_INT(1, recall(clients[1], "quiet", "psst"));
  CHECK_INT(TAG, rl_queue_next(queue, QUIET_MS));
  check_reason(lease, "psst");
  give_back(lease);
  rl_client_close(client);
}

static void all_permits_and_a_leader_hear_it(void) {
  rl_lease* leases[3];
  rl_lease* leader;
  size_t i;
  for (i = 0; i < TEST_COUNT(leases); ++i) {
    leases[i] = hold_as(clients[i % 2], "permits", "limit", "5");
    watch(leases[i], (int64_t)i + 1);
  }
  CHECK_INT(3, recall(clients[1], "permits", "all"));
  for (i = 0; i < TEST_COUNT(leases); ++i) CHECK(rl_queue_next(queue, PATIENCE_MS) != 0);
  for (i = 0; i < TEST_COUNT(leases); ++i) {
    CHECK_INT(1, rl_lease_recall_count(leases[i]));
    check_reason(leases[i], "all");
    give_back(leases[i]);
  }
  leader = hold_as(clients[0], "office", "id", "one");
  watch(leader, TAG);
  CHECK_INT(1, recall(clients[1], "office", "resign"));
  check_event(leader, TAG);
  give_back(leader);
}

/* ---- 64 threads ------------------------------------------------------------------------------ */

static atomic_int reading_count;

/* Read until the recall comes. */
static void* read_until_recalled(void* client) {
  rl_queue* own = rl_queue_new(NULL);
  rl_lease* lease = rl_rw_acquire_read((rl_client*)client, TEXT("crowd"), PATIENCE_MS, NULL, NULL);
  if (!CHECK(lease != NULL)) return NULL;
  CHECK_INT(RL_OK, rl_lease_watch_recall(lease, own, TAG));
  atomic_fetch_add(&reading_count, 1);
  CHECK_INT(TAG, rl_queue_next(own, -1));
  check_reason(lease, "writer");
  rl_queue_free(own);
  give_back(lease);
  return NULL;
}

static void readers_of_64_threads_hear_it(void) {
  pthread_t threads[THREAD_COUNT];
  rl_lease* writer;
  size_t i;
  for (i = 0; i < THREAD_COUNT; ++i) {
    REQUIRE(pthread_create(&threads[i], NULL, read_until_recalled, clients[i % 2]) == 0);
  }
  EVENTUALLY(atomic_load(&reading_count) == THREAD_COUNT, PATIENCE_MS);
  CHECK_INT(THREAD_COUNT, recall(clients[1], "crowd", "writer"));
  for (i = 0; i < THREAD_COUNT; ++i) pthread_join(threads[i], NULL);
  writer = rl_rw_acquire_write(clients[1], TEXT("crowd"), PATIENCE_MS, NULL, NULL);
  CHECK(writer != NULL);
  give_back(writer);
}

static void* recall_crowd(void* client) {
  CHECK_INT(1, recall((rl_client*)client, "asked", "all at once"));
  return NULL;
}

static void recalls_of_64_threads_are_one_event(void) {
  pthread_t threads[THREAD_COUNT];
  rl_lease* lease = hold(clients[0], "asked");
  size_t i;
  watch(lease, TAG);
  for (i = 0; i < THREAD_COUNT; ++i) {
    REQUIRE(pthread_create(&threads[i], NULL, recall_crowd, clients[i % 2]) == 0);
  }
  for (i = 0; i < THREAD_COUNT; ++i) pthread_join(threads[i], NULL);
  check_event(lease, TAG);
  CHECK_INT(RL_OK, rl_extend(lease, 30000, NULL));
  CHECK_INT(0, rl_queue_next(queue, 0));
  CHECK(rl_lease_recall_count(lease) >= 2);
  CHECK(rl_lease_recall_count(lease) <= THREAD_COUNT);
  give_back(lease);
}

/* ---- what is sent ---------------------------------------------------------------------------- */

static int64_t sent_count(void) {
  return server_number("EVAL",
                       "return tonumber(string.match(redis.call('INFO', 'commandstats'), "
                       "'cmdstat_publish:calls=(%d+)') or 0) + "
                       "tonumber(string.match(redis.call('INFO', 'commandstats'), "
                       "'cmdstat_spublish:calls=(%d+)') or 0)",
                       "0", NULL);
}

/* A machine that stops for a second between the two calls sends both: then once more. */
static int sends_one_of_two(rl_client* client, const char* name) {
  rl_lease* lease = hold(clients[0], name);
  const int64_t began_ms = now_ms(), sent = sent_count();
  int64_t later;
  CHECK_INT(1, recall(client, name, "first"));
  CHECK_INT(1, recall(client, name, "second"));
  later = sent_count();
  if (now_ms() - began_ms < 1000) {
    CHECK_INT(sent + 1, later);
    check_count(lease, 1);
    check_reason(lease, "first");
  }
  give_back(lease);
  return now_ms() - began_ms < 1000;
}

static void two_within_a_second_send_one(void) {
  int64_t heard = 0;
  int is_done = 0;
  EVENTUALLY((is_done = sends_one_of_two(clients[1], "twice")) || (sleep_ms(1000), 0), PATIENCE_MS);
  CHECK(is_done);
  /* After a second the next one is sent, and says what is true then. */
  EVENTUALLY(rl_recall(clients[1], TEXT("twice"), NULL, 0, &heard, NULL) == RL_OK && heard == 0,
             PATIENCE_MS);
}

static void check_hears(rl_client* client, const char* name) {
  rl_lease* lease = hold(client, name);
  watch(lease, TAG);
  CHECK_INT(1, recall(clients[1], name, name));
  check_event(lease, TAG);
  check_reason(lease, name);
  give_back(lease);
}

static void other_protocols_hear_it(void) {
  rl_client* client = client_with("protocol=2");
  check_hears(client, "resp2");
  CHECK_INT(0, recall(client, "back", ""));
  rl_client_close(client);
  client = client_with("namespace=app%3A");
  CHECK_INT(0, recall(client, "spaces", ""));
  rl_client_close(client);
}

static void a_connection_that_comes_back_hears_it(void) {
  rl_client* client = server_client();
  rl_lease* lease = hold(client, "broken");
  int64_t heard = 0;
  watch(lease, TAG);
  CHECK(server_number("CLIENT", "KILL", "TYPE", "normal", NULL) >= 0);
  CHECK(server_number("CLIENT", "KILL", "TYPE", "pubsub", NULL) >= 0);
  /* The watch alone brings the connection back, and a recall is sent after that. */
  EVENTUALLY(
      rl_recall(clients[1], TEXT("broken"), TEXT("back"), &heard, NULL) == RL_OK && heard == 1,
      PATIENCE_MS);
  check_event(lease, TAG);
  check_reason(lease, "back");
  give_back(lease);
  rl_client_close(client);
}

/* An attached lease has the token of the client that acquired it. */
static void an_attached_lease_hears_nothing(void) {
  char token[RL_TOKEN_BYTES + 1];
  rl_lease* lease = hold(clients[0], "attached");
  CHECK_INT(RL_OK, rl_lease_detach(lease, token, sizeof token, NULL));
  rl_lease_free(lease);
  lease = rl_lease_attach(clients[1], TEXT("attached"), token, strlen(token), 0, NULL, NULL);
  REQUIRE(lease != NULL);
  watch(lease, TAG);
  CHECK_INT(1, recall(clients[1], "attached", ""));
  check_no_event(lease, 0);
  give_back(lease);
}

/* ---- arguments ------------------------------------------------------------------------------- */

static void a_reason_is_data(void) {
  static const char longest[] =
      "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
      "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
  char text[RL_MAX_REASON_BYTES + 1];
  rl_lease* lease = hold(clients[0], "reasons");
  watch(lease, TAG);
  CHECK_INT(1, recall(clients[0], "reasons", longest));
  check_event(lease, TAG);
  check_reason(lease, longest);
  CHECK_INT(RL_MAX_REASON_BYTES, rl_lease_recall_reason(lease, text, 4));
  CHECK(strcmp("012", text) == 0);
  CHECK_INT(RL_OK, rl_recall(clients[1], TEXT("reasons"), TEXT("a\0b\n\x1b[31m:%s"), NULL, NULL));
  check_count(lease, 2);
  CHECK(rl_lease_recall_reason(lease, text, sizeof text) > 0);
  CHECK(strchr(text, '\n') == NULL && strchr(text, '\x1b') == NULL);
  CHECK_HAS("[31m:%s", text);
  give_back(lease);
}

static void check_nonsense(rl_status status, const char* message, const rl_error* err) {
  CHECK_INT(RL_E_INVALID, status);
  CHECK_INT(RL_E_INVALID, rl_error_status(err));
  CHECK_HAS(message, rl_error_message(err));
}

static void check_finished(rl_request* request) {
  REQUIRE(request != NULL);
  CHECK_INT(RL_E_INVALID, rl_request_status(request));
  CHECK(rl_request_message(request)[0] != '\0');
  CHECK_INT(0, rl_recall_heard(request));
  rl_request_free(request);
}

static void nonsense_is_refused(void) {
  char longer[RL_MAX_REASON_BYTES + 1];
  char buffer[4] = "xxx";
  int64_t heard = 9;
  rl_client* client = clients[0];
  rl_error* err = rl_error_new();
  rl_lease* lease = hold(client, "nonsense");
  rl_request* other = rl_inspect_start(client, TEXT("nonsense"));
  memset(longer, 'x', sizeof longer);
  check_nonsense(rl_recall(NULL, TEXT("x"), TEXT("y"), &heard, err), "", err);
  CHECK_INT(0, heard);
  check_nonsense(rl_recall(client, NULL, 3, TEXT("y"), &heard, err), "", err);
  check_nonsense(rl_recall(client, TEXT(""), TEXT("y"), &heard, err), "name", err);
  check_nonsense(rl_recall(client, TEXT("x"), NULL, 3, &heard, err), "reason", err);
  check_nonsense(rl_recall(client, TEXT("x"), longer, sizeof longer, &heard, err),
                 "reason must be at most 128 bytes (got 129 bytes)", err);
  check_finished(rl_recall_start(NULL, TEXT("x"), TEXT("y")));
  check_finished(rl_recall_start(client, NULL, 3, TEXT("y")));
  check_finished(rl_recall_start(client, TEXT("x"), NULL, 3));
  check_finished(rl_recall_start(client, TEXT("x"), longer, sizeof longer));
  CHECK_INT(0, rl_recall_heard(NULL));
  CHECK_INT(RL_OK, rl_request_wait(other, -1));
  CHECK_INT(0, rl_recall_heard(other)); /* It is no recall. */
  rl_request_free(other);
  CHECK_INT(RL_E_INVALID, rl_lease_watch_recall(NULL, queue, 1));
  CHECK_INT(RL_E_INVALID, rl_lease_watch_recall(lease, queue, 0));
  CHECK_INT(0, rl_lease_recall_count(NULL));
  CHECK_INT(0, rl_lease_recall_reason(NULL, buffer, sizeof buffer));
  CHECK_INT(0, buffer[0]);
  CHECK_INT(0, rl_lease_recall_reason(lease, NULL, 9));
  rl_error_free(err);
  give_back(lease);
}

static rl_client* open_redlock(void) {
  rl_client_options* options = rl_client_options_new();
  rl_client* redlock;
  char urls[1024] = "";
  size_t i;
  for (i = 0; i < 3; ++i) {
    server_select(i);
    strcat(urls, server_url());
    strcat(urls, " ");
  }
  server_select(0);
  rl_client_options_set(options, TEXT("restart_guard"), TEXT("off"), NULL);
  redlock = rl_redlock_open(urls, strlen(urls), options, NULL);
  rl_client_options_free(options);
  return redlock;
}

static void a_redlock_supports_none(void) {
  rl_client* redlock = open_redlock();
  rl_error* err = rl_error_new();
  rl_lease* lease = hold(redlock, "voted");
  rl_request* request = rl_recall_start(redlock, TEXT("voted"), TEXT("x"));
  int64_t heard = 9;
  CHECK_INT(RL_E_UNSUPPORTED, rl_recall(redlock, TEXT("voted"), TEXT("x"), &heard, err));
  CHECK_HAS("not possible with a Redlock", rl_error_message(err));
  CHECK_INT(0, heard);
  CHECK_INT(RL_E_UNSUPPORTED, rl_request_wait(request, -1));
  CHECK_INT(0, rl_recall_heard(request));
  CHECK_INT(RL_E_UNSUPPORTED, rl_lease_watch_recall(lease, queue, 1));
  CHECK_INT(0, rl_lease_recall_count(lease));
  CHECK_INT(0, rl_lease_recall_reason(lease, NULL, 0));
  rl_request_free(request);
  give_back(lease);
  rl_error_free(err);
  rl_client_close(redlock);
}

static void a_closed_client_sends_none(void) {
  rl_client* client = server_client();
  rl_lease* lease = hold(client, "closed");
  watch(lease, TAG);
  rl_client_shutdown(client);
  CHECK_INT(RL_E_CLOSED, rl_recall(client, TEXT("closed"), NULL, 0, NULL, NULL));
  CHECK_INT(RL_OK, rl_lease_watch_recall(lease, queue, TAG));
  CHECK_INT(0, rl_queue_next(queue, 0));
  rl_lease_free(lease);
  rl_client_close(client);
}

static const struct test tests[] = {
    {"another_client_is_heard", another_client_is_heard},
    {"the_own_client_is_heard", the_own_client_is_heard},
    {"the_event_comes_once_and_all_recalls_count", the_event_comes_once_and_all_recalls_count},
    {"a_watch_that_comes_late_posts_at_once", a_watch_that_comes_late_posts_at_once},
    {"a_watch_is_replaced_and_removed", a_watch_is_replaced_and_removed},
    {"the_end_of_the_lease_drops_the_watch", the_end_of_the_lease_drops_the_watch},
    {"watches_do_not_keep_what_was_freed", watches_do_not_keep_what_was_freed},
    {"no_holder_is_no_error", no_holder_is_no_error},
    {"a_waiter_hears_nothing", a_waiter_hears_nothing},
    {"all_of_several_names_are_one_lease", all_of_several_names_are_one_lease},
    {"a_quiet_client_hears_it", a_quiet_client_hears_it},
    {"all_permits_and_a_leader_hear_it", all_permits_and_a_leader_hear_it},
    {"readers_of_64_threads_hear_it", readers_of_64_threads_hear_it},
    {"recalls_of_64_threads_are_one_event", recalls_of_64_threads_are_one_event},
    {"two_within_a_second_send_one", two_within_a_second_send_one},
    {"other_protocols_hear_it", other_protocols_hear_it},
    {"a_connection_that_comes_back_hears_it", a_connection_that_comes_back_hears_it},
    {"an_attached_lease_hears_nothing", an_attached_lease_hears_nothing},
    {"a_reason_is_data", a_reason_is_data},
    {"nonsense_is_refused", nonsense_is_refused},
    {"a_redlock_supports_none", a_redlock_supports_none},
    {"a_closed_client_sends_none", a_closed_client_sends_none},
};

int main(int argc, char** argv) {
  int failed;
  clients[0] = server_client();
  clients[1] = server_client();
  queue = rl_queue_new(NULL);
  failed = run_tests(tests, TEST_COUNT(tests), argc, argv);
  rl_client_close(clients[0]);
  rl_client_close(clients[1]);
  rl_queue_free(queue);
  return failed;
}
