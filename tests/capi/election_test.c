/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Goal: of the candidates of an election one leads, others read its id and term from the grant on,
 * and an observer hears of each leader. Method: threads of two clients. The rules one by one are in
 * tests/conformance, and under faults in tests/sim.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "calls.h"
#include "harness.h"
#include "redlatch/redlatch.h"
#include "server.h"

enum { THREAD_COUNT = 64, LONG_MS = 60000 };

static rl_client* clients[2];
static atomic_int leader_count;
static _Atomic int64_t last_term;

static rl_lease* campaign(rl_client* client, const char* name, const char* id, int64_t wait_ms,
                          rl_error* err) {
  rl_acquire_options* options = rl_acquire_options_new();
  rl_lease* lease;
  rl_acquire_options_set(options, TEXT("id"), id, strlen(id), err);
  rl_acquire_options_set(options, TEXT("label"), TEXT("at once"), err); /* The description, too. */
  lease = rl_acquire(client, name, strlen(name), wait_ms, options, err);
  rl_acquire_options_free(options);
  return lease;
}

static rl_info* leader(const char* name) {
  rl_info* info = rl_leader(clients[1], name, strlen(name), NULL);
  CHECK(info != NULL);
  return info;
}

static int is_id(const rl_info* info, int32_t part, int32_t row, const char* id) {
  char text[300];
  rl_info_text(info, part, row, RL_FIELD_CANDIDATE, text, sizeof text);
  return strcmp(text, id) == 0;
}

static int leads(const char* name, const char* id) {
  rl_info* info = leader(name);
  const int found = is_id(info, RL_PART_HOLDER, 0, id);
  rl_info_free(info);
  return found;
}

static int64_t position_of(const rl_info* info) {
  return rl_info_number(info, RL_PART_LOCK, 0, RL_FIELD_POSITION);
}

static void id_and_term_are_readable(void) {
  rl_lease* lease = campaign(clients[0], "read", "one", 0, NULL);
  rl_info* info = leader("read");
  REQUIRE(lease != NULL);
  CHECK_INT(1, rl_info_count(info, RL_PART_HOLDER));
  CHECK(is_id(info, RL_PART_HOLDER, 0, "one"));
  CHECK_INT(rl_lease_fence(lease), rl_info_number(info, RL_PART_LOCK, 0, RL_FIELD_FENCE));
  CHECK(rl_info_number(info, RL_PART_HOLDER, 0, RL_FIELD_SINCE_MS) > 0);
  rl_info_free(info);
  /* The description of the holder has them, too, and they outlive both other keys. */
  EVENTUALLY(server_number("HEXISTS", "{read}:rl1:i", "fence", NULL) == 1, 20000);
  CHECK_INT(2, server_number("DEL", "{read}:rl1:e", "{read}:rl1:f", NULL));
  info = leader("read");
  CHECK(is_id(info, RL_PART_HOLDER, 0, "one"));
  CHECK_INT(rl_lease_fence(lease), rl_info_number(info, RL_PART_LOCK, 0, RL_FIELD_FENCE));
  rl_info_free(info);
  give_back(lease);
  CHECK(leads("read", ""));
}

static void a_holder_without_an_id_is_no_leader(void) {
  rl_lease* lease = rl_acquire(clients[0], TEXT("plain"), 0, NULL, NULL);
  rl_info* info = leader("plain");
  CHECK_INT(1, rl_info_count(info, RL_PART_HOLDER));
  CHECK(is_id(info, RL_PART_HOLDER, 0, ""));
  rl_info_free(info);
  CHECK(campaign(clients[1], "plain", "two", 0, NULL) == NULL);
  give_back(lease);
}

static void candidates_are_listed(void) {
  rl_lease* lease = campaign(clients[0], "listed", "one", 0, NULL);
  rl_acquire_options* options = rl_acquire_options_new();
  rl_request *second, *third;
  rl_info* info;
  rl_acquire_options_set(options, TEXT("id"), TEXT("two"), NULL);
  second = rl_acquire_start(clients[0], TEXT("listed"), -1, options);
  EVENTUALLY(waiting_count(clients[1], "listed") == 1, 20000);
  third = rl_acquire_start(clients[1], TEXT("listed"), -1, NULL);
  EVENTUALLY(waiting_count(clients[1], "listed") == 2, 20000);
  info = rl_inspect(clients[1], TEXT("listed"), NULL);
  CHECK(is_id(info, RL_PART_HOLDER, 0, "one"));
  CHECK(is_id(info, RL_PART_WAITER, 0, "two"));
  CHECK(is_id(info, RL_PART_WAITER, 1, ""));
  rl_info_free(info);
  give_back(lease);
  CHECK_INT(RL_OK, rl_request_wait(second, -1));
  CHECK(leads("listed", "two"));
  rl_request_free(second); /* Nobody takes the lease: it is released. */
  CHECK_INT(RL_OK, rl_request_wait(third, -1));
  rl_request_free(third);
  rl_acquire_options_free(options);
}

static void* run_for_office(void* client) {
  rl_lease* lease = campaign((rl_client*)client, "race", "candidate", -1, NULL);
  CHECK(lease != NULL);
  CHECK_INT(1, atomic_fetch_add(&leader_count, 1) + 1);
  CHECK(rl_lease_fence(lease) > atomic_exchange(&last_term, rl_lease_fence(lease)));
  atomic_fetch_sub(&leader_count, 1);
  give_back(lease);
  return NULL;
}

static void one_of_64_candidates_leads(void) {
  pthread_t threads[THREAD_COUNT];
  size_t i;
  for (i = 0; i < THREAD_COUNT; ++i) {
    REQUIRE(pthread_create(&threads[i], NULL, run_for_office, clients[i % 2]) == 0);
  }
  for (i = 0; i < THREAD_COUNT; ++i) pthread_join(threads[i], NULL);
  CHECK_INT(0, server_number("EXISTS", "race", "{race}:rl1:q", NULL));
  CHECK(server_number("PTTL", "{race}:rl1:e", NULL) > 0);
}

/* Its tag comes when `id` leads, or nobody does. */
static rl_request* watch(rl_queue* queue, rl_client* client, int64_t seen) {
  rl_request* request = rl_leader_watch_start(client, TEXT("watched"), seen, -1);
  CHECK_INT(RL_OK, rl_request_watch(request, queue, 7));
  return request;
}

static int64_t check_news(rl_queue* queue, rl_request* request, const char* id) {
  rl_info* info;
  int64_t position;
  CHECK_INT(7, rl_queue_next(queue, 20000));
  CHECK_INT(RL_OK, rl_request_status(request));
  info = rl_request_take_info(request);
  CHECK(info != NULL);
  CHECK(is_id(info, RL_PART_HOLDER, 0, id));
  position = position_of(info);
  rl_info_free(info);
  rl_request_free(request);
  return position;
}

static void observe_with(rl_client* client) {
  rl_queue* queue = rl_queue_new(NULL);
  rl_lease* lease = campaign(clients[0], "watched", "one", 0, NULL);
  rl_request* request;
  int64_t position = check_news(queue, watch(queue, client, -1), "one");
  request = watch(queue, client, position);
  CHECK_INT(0, rl_queue_next(queue, 300)); /* A renewal, or nothing, is no news. */
  CHECK_INT(RL_OK, rl_extend(lease, LONG_MS, NULL));
  CHECK_INT(0, rl_queue_next(queue, 300));
  give_back(lease);
  position = check_news(queue, request, "");
  request = watch(queue, client, position);
  lease = campaign(clients[0], "watched", "two", 0, NULL);
  position = check_news(queue, request, "two");
  request = watch(queue, client, position);
  CHECK_INT(RL_OK, rl_force_release_any(clients[1], TEXT("watched"), NULL));
  position = check_news(queue, request, "");
  CHECK(position > 0);
  rl_lease_free(lease);
  rl_queue_free(queue);
}

static void an_observer_sees_each_leader(void) { observe_with(clients[1]); }

static void an_observer_polls_where_nothing_is_reported(void) {
  rl_client* client = client_with("protocol=2");
  observe_with(client);
  rl_client_close(client);
}

/* A leader with a lower term than one that was seen: a server that has lost the later one. */
static void terms_never_fall(void) {
  rl_lease* lease = campaign(clients[0], "fall", "old", 0, NULL);
  rl_info* info = leader("fall");
  const int64_t later = position_of(info) + 2;
  rl_info_free(info);
  info = rl_leader_watch(clients[1], TEXT("fall"), later, 5000, NULL);
  REQUIRE(info != NULL);
  CHECK(is_id(info, RL_PART_HOLDER, 0, ""));
  CHECK_INT(later - 1, position_of(info));
  rl_info_free(info);
  give_back(lease);
}

/* A leader that does not renew: the description lasts as long as what it extends. */
static void an_extension_keeps_the_id(void) {
  rl_acquire_options* options = rl_acquire_options_new();
  rl_lease* lease;
  rl_acquire_options_set(options, TEXT("id"), TEXT("one"), NULL);
  rl_acquire_options_set_renew(options, 0);
  lease = rl_acquire(clients[0], TEXT("extended"), 0, options, NULL);
  REQUIRE(lease != NULL);
  CHECK_INT(RL_OK, rl_extend(lease, LONG_MS, NULL));
  CHECK_INT(2, server_number("DEL", "{extended}:rl1:e", "{extended}:rl1:f", NULL));
  CHECK(leads("extended", "one"));
  give_back(lease);
  rl_acquire_options_free(options);
}

static void a_term_stays_with_its_leader(void) {
  rl_error* err = rl_error_new();
  rl_acquire_options* options = rl_acquire_options_new();
  rl_lease* lease = campaign(clients[0], "stays", "one", 0, NULL);
  char token[RL_TOKEN_BYTES + 1];
  CHECK_INT(RL_E_INVALID, rl_lease_detach(lease, token, sizeof token, err));
  CHECK_HAS("the term of 'one' in election 'stays' must be resigned", rl_error_message(err));
  CHECK_INT(RL_E_INVALID, rl_rw_downgrade(lease, err));
  CHECK_INT(RL_LEASE_HELD, rl_lease_state(lease));
  CHECK(leads("stays", "one"));
  rl_lease_token(lease, token, sizeof token);
  rl_acquire_options_set(options, TEXT("id"), TEXT("two"), NULL);
  CHECK(rl_lease_attach(clients[1], TEXT("stays"), token, strlen(token), 0, options, err) == NULL);
  CHECK_HAS("option 'id' must not be set for an attach", rl_error_message(err));
  give_back(lease);
  rl_acquire_options_free(options);
  rl_error_free(err);
}

static void an_observer_ends(void) {
  rl_error* err = rl_error_new();
  /* A thread that waits is woken at its limit, whatever the limit of a command. */
  rl_client* client = client_with("command_timeout=60000ms");
  rl_info* info = leader("ends");
  const int64_t position = position_of(info);
  rl_request *cancelled, *closed;
  rl_info_free(info);
  CHECK(rl_leader_watch(client, TEXT("ends"), position, 30, err) == NULL);
  CHECK_INT(RL_TIMEOUT, rl_error_status(err));
  CHECK_HAS("the leader of 'ends' has not changed within 30 ms", rl_error_message(err));
  info = rl_leader_watch(client, TEXT("ends"), position, 0, err);
  CHECK_INT(position, position_of(info));
  rl_info_free(info);
  cancelled = rl_leader_watch_start(client, TEXT("ends"), position, -1);
  CHECK_INT(RL_PENDING, rl_request_wait(cancelled, 20));
  CHECK_INT(RL_CANCELLED, rl_request_cancel(cancelled));
  rl_request_free(cancelled);
  closed = rl_leader_watch_start(client, TEXT("ends"), position, -1);
  rl_client_close(client);
  CHECK_INT(RL_E_CLOSED, rl_request_status(closed));
  rl_request_free(closed);
  rl_error_free(err);
}

static void check_refused(const char* option, const char* value, const char* message) {
  rl_error* err = rl_error_new();
  rl_acquire_options* options = rl_acquire_options_new();
  rl_acquire_options_set(options, TEXT("id"), TEXT("x"), NULL);
  rl_acquire_options_set(options, option, strlen(option), value, strlen(value), NULL);
  CHECK(rl_acquire(clients[0], TEXT("refused"), 0, options, err) == NULL);
  CHECK_INT(RL_E_INVALID, rl_error_status(err));
  CHECK_HAS(message, rl_error_message(err));
  rl_acquire_options_free(options);
  rl_error_free(err);
}

/* Beside the option mode, a function can say that the lock is only read. */
static void a_reader_is_no_candidate(void) {
  rl_error* err = rl_error_new();
  rl_acquire_options* options = rl_acquire_options_new();
  rl_lease* lease;
  rl_request* request;
  rl_acquire_options_set(options, TEXT("id"), TEXT("x"), NULL);
  CHECK(rl_rw_acquire_read(clients[0], TEXT("refused"), 0, options, err) == NULL);
  CHECK_INT(RL_E_INVALID, rl_error_status(err));
  CHECK_HAS("option 'id' must not be set for a reader (got 'x')", rl_error_message(err));
  request = rl_rw_acquire_read_start(clients[0], TEXT("refused"), 0, options);
  CHECK_INT(RL_E_INVALID, rl_request_status(request));
  rl_request_free(request);
  lease = rl_rw_acquire_write(clients[0], TEXT("refused"), 0, options, err);
  CHECK(leads("refused", "x"));
  give_back(lease);
  rl_acquire_options_free(options);
  rl_error_free(err);
}

static void bad_arguments_are_refused(void) {
  rl_error* err = rl_error_new();
  rl_request* request;
  check_refused("id", "", "option 'id' must be 1 to 256 bytes (got 0 bytes)");
  check_refused("mode", "read", "option 'mode' must be write for an election (got read)");
  check_refused("format", "hash-rw", "option 'format' must be auto or string for an election");
  check_refused("limit", "2", "option 'id' must not be set for a semaphore");
  CHECK(rl_leader(NULL, TEXT("x"), err) == NULL);
  CHECK_INT(RL_E_INVALID, rl_error_status(err));
  CHECK(rl_leader(clients[0], NULL, 3, err) == NULL);
  CHECK_INT(RL_E_INVALID, rl_error_status(err));
  CHECK(rl_leader_watch(clients[0], TEXT("x"), -2, -1, err) == NULL);
  CHECK_HAS("seen must be -1, or a position of an earlier answer (got -2)", rl_error_message(err));
  CHECK(rl_leader_watch(NULL, TEXT("x"), -1, -1, err) == NULL);
  CHECK_INT(RL_E_INVALID, rl_error_status(err));
  CHECK(rl_leader_watch(clients[0], TEXT("x"), -1, -2, err) == NULL);
  CHECK_INT(RL_E_INVALID, rl_error_status(err));
  request = rl_leader_start(NULL, TEXT("x"));
  CHECK_INT(RL_E_INVALID, rl_request_status(request));
  rl_request_free(request);
  request = rl_leader_start(clients[0], NULL, 3);
  CHECK_INT(RL_E_INVALID, rl_request_status(request));
  rl_request_free(request);
  request = rl_leader_watch_start(NULL, TEXT("x"), -1, -1);
  CHECK_INT(RL_E_INVALID, rl_request_status(request));
  rl_request_free(request);
  request = rl_leader_watch_start(clients[0], TEXT("x"), -2, -1);
  CHECK_INT(RL_E_INVALID, rl_request_status(request));
  rl_request_free(request);
  rl_error_free(err);
}

static const struct test tests[] = {
    {"id_and_term_are_readable", id_and_term_are_readable},
    {"a_holder_without_an_id_is_no_leader", a_holder_without_an_id_is_no_leader},
    {"candidates_are_listed", candidates_are_listed},
    {"one_of_64_candidates_leads", one_of_64_candidates_leads},
    {"an_observer_sees_each_leader", an_observer_sees_each_leader},
    {"an_observer_polls_where_nothing_is_reported", an_observer_polls_where_nothing_is_reported},
    {"terms_never_fall", terms_never_fall},
    {"an_extension_keeps_the_id", an_extension_keeps_the_id},
    {"a_term_stays_with_its_leader", a_term_stays_with_its_leader},
    {"an_observer_ends", an_observer_ends},
    {"a_reader_is_no_candidate", a_reader_is_no_candidate},
    {"bad_arguments_are_refused", bad_arguments_are_refused},
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
