/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Goal: no function of the ABI is harmed by NULL or nonsense, and each answers as convention 10 of
 * the header says. Method: rows of calls, one group for each section of the header; tests/abi
 * checks that every function is named in this file, or in jobs_test.c.
 */
#include <stdlib.h>

#include "calls.h"
#include "harness.h"
#include "redlatch/redlatch.h"
#include "server.h"

static rl_error* err;

/* A call without `err` that must answer RL_E_INVALID. */
#define INVALID(call) CHECK_INT(RL_E_INVALID, (call))

/* The same for a call that is passed `err`, which must say so too, in words. */
#define INVALID_WITH_ERROR(call)                   \
  do {                                             \
    CHECK_INT(RL_E_INVALID, (call));               \
    CHECK_INT(RL_E_INVALID, rl_error_status(err)); \
    CHECK(rl_error_message(err)[0] != '\0');       \
  } while (0)

/* A call that returns a handle, and here must not. */
#define NO_HANDLE(call)                            \
  do {                                             \
    CHECK((call) == NULL);                         \
    CHECK_INT(RL_E_INVALID, rl_error_status(err)); \
    CHECK(rl_error_message(err)[0] != '\0');       \
  } while (0)

static void check_finished_request(rl_request* request) {
  REQUIRE(request != NULL);
  CHECK_INT(RL_E_INVALID, rl_request_status(request));
  CHECK_INT(RL_E_INVALID, rl_request_wait(request, -1));
  CHECK(rl_request_message(request)[0] != '\0');
  CHECK(rl_request_take_lease(request) == NULL);
  INVALID(rl_request_cancel(request));
  rl_request_free(request);
}

static rl_client* open_client(void) {
  rl_client* client;
  const char* url = server_url();
  client = rl_client_open(url, strlen(url), NULL, err);
  if (!CHECK(client != NULL)) exit(EXIT_FAILURE);
  return client;
}

static void statuses_and_constants(void) {
  CHECK_INT(0, strcmp("RL_UNKNOWN", rl_status_name(-12345)));
  CHECK_INT(0, strcmp("RL_UNKNOWN", rl_status_name(INT32_MAX)));
  CHECK_INT(0, strcmp("RL_UNKNOWN", rl_status_name(INT32_MIN)));
  CHECK_INT(0, strcmp("RL_E_LOST", rl_status_name(RL_E_LOST)));
  REQUIRE(rl_status_text(INT32_MIN) != NULL);
  CHECK(rl_status_text(INT32_MIN)[0] != '\0');
  CHECK_INT(0, rl_status_is(INT32_MIN, RL_RETRYABLE | RL_MAYBE_APPLIED));
  CHECK_INT(0, rl_status_is(RL_E_OUTCOME_UNKNOWN, 0));
  CHECK_INT(1, rl_status_is(RL_E_OUTCOME_UNKNOWN, RL_MAYBE_APPLIED));
  CHECK_INT(1, rl_status_is(RL_E_OUTCOME_UNKNOWN, -1));
  CHECK_INT(0, rl_status_is(RL_E_LOST, RL_MAYBE_APPLIED));
  CHECK_INT(RL_E_LOST, rl_constant(TEXT("RL_E_LOST"), 77));
  CHECK_INT(77, rl_constant(TEXT("RL_E_NONSENSE"), 77));
  CHECK_INT(77, rl_constant(TEXT("RL_E_LOS"), 77));
  CHECK_INT(77, rl_constant(TEXT("RL_E_LOST\0"), 77));
  CHECK_INT(77, rl_constant("", 0, 77));
  CHECK_INT(77, rl_constant(NULL, 0, 77));
  CHECK_INT(77, rl_constant(NULL, 9, 77));
  CHECK(rl_version() != NULL && rl_version()[0] != '\0');
  CHECK_INT(1, rl_abi_version());
}

static void rw_of_another_format(rl_client* client) {
  rl_acquire_options* options = rl_acquire_options_new();
  CHECK_INT(RL_OK, rl_acquire_options_set_owner(options, TEXT("me")));
  CHECK_INT(RL_OK, rl_acquire_options_set_reentrant(options, 1));
  NO_HANDLE(rl_rw_acquire_read(client, TEXT("x"), 0, options, err));
  NO_HANDLE(rl_rw_acquire_write(client, TEXT("x"), 0, options, err));
  check_finished_request(rl_rw_acquire_read_start(client, TEXT("x"), 0, options));
  CHECK_INT(RL_OK, rl_acquire_options_set(options, TEXT("mode"), TEXT("read"), err));
  NO_HANDLE(rl_acquire(client, TEXT("x"), 0, options, err));
  CHECK_HAS("string or hash-rw for a read-write lock", rl_error_message(err));
  check_finished_request(rl_acquire_start(client, TEXT("x"), 0, options));
  rl_acquire_options_free(options);
  options = rl_acquire_options_new();
  CHECK_INT(RL_OK, rl_acquire_options_set_format(options, RL_FORMAT_HASH_RW));
  CHECK_INT(RL_OK, rl_acquire_options_set_ttl_ms(options, 30001));
  NO_HANDLE(rl_acquire(client, TEXT("x"), 0, options, err));
  rl_acquire_options_free(options);
}

static void errors(void) {
  rl_error_free(NULL);
  INVALID(rl_error_status(NULL));
  REQUIRE(rl_error_message(NULL) != NULL);
  CHECK_INT(0, strcmp("", rl_error_message(NULL)));
  /* Set by a failure, and set back by a success. */
  INVALID_WITH_ERROR(rl_client_connect(NULL, 0, err));
  rl_client_close(open_client());
  CHECK_INT(RL_OK, rl_error_status(err));
  CHECK_INT(0, strcmp("", rl_error_message(err)));
}

static void client_options(void) {
  char text[8];
  rl_client_options* options = rl_client_options_new();
  REQUIRE(options != NULL);
  rl_client_options_free(NULL);
  INVALID_WITH_ERROR(rl_client_options_set(NULL, TEXT("db"), TEXT("1"), err));
  INVALID_WITH_ERROR(rl_client_options_set(options, NULL, 2, TEXT("1"), err));
  INVALID_WITH_ERROR(rl_client_options_set(options, NULL, 0, TEXT("1"), err));
  INVALID_WITH_ERROR(rl_client_options_set(options, TEXT(""), TEXT("1"), err));
  INVALID_WITH_ERROR(rl_client_options_set(options, TEXT("db"), NULL, 1, err));
  INVALID_WITH_ERROR(rl_client_options_set(options, TEXT("db"), TEXT(""), err));
  INVALID_WITH_ERROR(rl_client_options_set(options, TEXT("password"), NULL, 5, err));
  CHECK_INT(RL_OK, rl_client_options_set(options, TEXT("password"), NULL, 0, err));
  INVALID_WITH_ERROR(rl_client_options_set(options, TEXT("db"), TEXT("1\0"), err));
  INVALID_WITH_ERROR(rl_client_options_set(options, TEXT("db\0"), TEXT("1"), err));
  INVALID(rl_client_options_set(options, TEXT("nonsense"), TEXT("1"), NULL));
  INVALID(rl_client_options_set(NULL, NULL, 0, NULL, 0, NULL));
  CHECK_INT(RL_OK, rl_client_options_set(options, TEXT("db"), TEXT("1"), NULL));
  CHECK_INT(0, rl_client_options_get(NULL, TEXT("db"), NULL, 0));
  CHECK_INT(0, rl_client_options_get(options, NULL, 2, NULL, 0));
  CHECK_INT(0, rl_client_options_get(options, TEXT("nonsense"), NULL, 1));
  CHECK_INT(1, rl_client_options_get(options, TEXT("db"), NULL, 9));
  CHECK_INT(1, rl_client_options_get(options, TEXT("db"), text, sizeof text));
  CHECK_INT(0, strcmp("1", text));
  rl_client_options_free(options);
}

static void acquire_options(void) {
  rl_acquire_options* options = rl_acquire_options_new();
  REQUIRE(options != NULL);
  rl_acquire_options_free(NULL);
  INVALID(rl_acquire_options_set_ttl_ms(NULL, 1000));
  INVALID(rl_acquire_options_set_renew(NULL, 1));
  INVALID(rl_acquire_options_set_max_hold_ms(NULL, 1000));
  INVALID(rl_acquire_options_set_confirm(NULL, 1));
  INVALID(rl_acquire_options_set_max_local_handoffs(NULL, 1));
  INVALID(rl_acquire_options_set_label(NULL, TEXT("x")));
  INVALID(rl_acquire_options_set_renew(options, 2));
  INVALID(rl_acquire_options_set_renew(options, -1));
  INVALID(rl_acquire_options_set_confirm(options, INT32_MIN));
  INVALID(rl_acquire_options_set_confirm(options, 2));
  INVALID(rl_acquire_options_set_label(options, NULL, 1));
  INVALID(rl_acquire_options_set_label(options, "x", SIZE_MAX));
  CHECK_INT(RL_OK, rl_acquire_options_set_label(options, NULL, 0));
  INVALID(rl_acquire_options_set_format(NULL, RL_FORMAT_HASH));
  CHECK_INT(RL_OK, rl_acquire_options_set_format(options, 0));
  INVALID(rl_acquire_options_set_format(options, -1));
  INVALID(rl_acquire_options_set_format(options, 77));
  INVALID(rl_acquire_options_set_reentrant(NULL, 1));
  INVALID(rl_acquire_options_set_reentrant(options, 2));
  INVALID(rl_acquire_options_set_owner(options, "me", RL_MAX_OWNER_BYTES + 1));
  char buffer[8];
  INVALID_WITH_ERROR(rl_acquire_options_set(NULL, TEXT("ttl"), TEXT("1s"), err));
  INVALID_WITH_ERROR(rl_acquire_options_set(options, NULL, 0, TEXT("1s"), err));
  INVALID_WITH_ERROR(rl_acquire_options_set(options, TEXT("ttl"), NULL, 0, err));
  INVALID_WITH_ERROR(rl_acquire_options_set(options, TEXT("label"), NULL, 5, err));
  INVALID_WITH_ERROR(rl_acquire_options_set(options, NULL, 3, TEXT("1s"), err));
  CHECK_INT(RL_OK, rl_acquire_options_set(options, TEXT("label"), NULL, 0, err));
  INVALID_WITH_ERROR(rl_acquire_options_set(options, TEXT("nonsense"), TEXT("1s"), err));
  INVALID_WITH_ERROR(rl_acquire_options_set(options, TEXT("mode"), TEXT("reader"), err));
  CHECK_HAS("option 'mode' must be write or read (got 'reader')", rl_error_message(err));
  CHECK_INT(RL_OK, rl_acquire_options_set(options, TEXT("mode"), TEXT("write"), err));
  INVALID(rl_acquire_options_set(options, TEXT("ttl"), TEXT("500"), NULL));
  CHECK_INT(RL_OK, rl_acquire_options_set(options, TEXT("ttl"), TEXT("5s"), err));
  INVALID(rl_acquire_options_set_min_replicas(NULL, 1, 1000));
  CHECK_INT(0, rl_acquire_options_get(NULL, TEXT("ttl"), buffer, sizeof buffer));
  CHECK_INT(0, rl_acquire_options_get(options, NULL, 3, buffer, sizeof buffer));
  CHECK_INT(0, rl_acquire_options_get(options, TEXT("nonsense"), NULL, 0));
  CHECK_INT(6, rl_acquire_options_get(options, TEXT("ttl"), NULL, 9));
  CHECK_INT(3, rl_nearest_word(TEXT("tll"), TEXT("renew ttl"), buffer, sizeof buffer));
  CHECK_INT(0, strcmp("ttl", buffer));
  CHECK_INT(0, rl_nearest_word(TEXT("nonsense"), TEXT("renew ttl"), NULL, 0));
  CHECK_INT(0, rl_nearest_word(NULL, 3, NULL, 4, NULL, 0));
  INVALID(rl_acquire_options_set_owner(NULL, TEXT("me")));
  INVALID(rl_acquire_options_set_owner(options, NULL, 2));
  INVALID(rl_acquire_options_set_owner(options, "", 0));
  INVALID(rl_acquire_options_set_owner(options, "me", SIZE_MAX));
  rl_acquire_options_free(options);
}

static void clients(void) {
  char buffer[8] = "xxxxxxx";
  rl_client* client = open_client();
  NO_HANDLE(rl_client_open(NULL, 0, NULL, err));
  NO_HANDLE(rl_client_open(NULL, 9, NULL, err));
  NO_HANDLE(rl_client_open(TEXT(""), NULL, err));
  NO_HANDLE(rl_client_open(TEXT("redis://localhost\0:6379"), NULL, err));
  CHECK(rl_client_open(NULL, 0, NULL, NULL) == NULL);
  INVALID_WITH_ERROR(rl_client_connect(NULL, 0, err));
  INVALID(rl_client_connect(NULL, 0, NULL));
  INVALID_WITH_ERROR(rl_client_connect(client, -2, err));
  INVALID_WITH_ERROR(rl_client_connect(client, INT64_MIN, err));
  CHECK_INT(RL_OK, rl_client_connect(client, 0, NULL));
  rl_client_shutdown(NULL);
  rl_client_close(NULL);
  INVALID_WITH_ERROR(rl_client_options_set_from_env(NULL, err));
  CHECK_INT(0, rl_client_option(NULL, TEXT("url"), buffer, sizeof buffer));
  CHECK_INT(0, rl_url_redact(NULL, 0, buffer, sizeof buffer));
  CHECK_INT(0, rl_url_redact(NULL, 5, NULL, 0));
  CHECK_INT(11, rl_url_redact(TEXT("redis://abc"), NULL, 0));
  CHECK_INT(11, rl_url_redact(TEXT("redis://abc"), NULL, 99));
  rl_client_close(client);
}

static void several_names(rl_client* client) {
  rl_names* names = rl_names_new();
  CHECK_INT(RL_E_INVALID, rl_names_add(NULL, TEXT("x"), RL_MODE_WRITE, NULL));
  CHECK_INT(RL_E_INVALID, rl_names_add(names, NULL, 3, RL_MODE_WRITE, NULL));
  CHECK_INT(RL_E_INVALID, rl_names_add(names, TEXT("x"), INT32_MIN, NULL));
  CHECK_INT(RL_E_INVALID, rl_names_add_path(NULL, TEXT("x"), NULL));
  CHECK_INT(RL_E_INVALID, rl_names_add_path(names, NULL, 3, NULL));
  NO_HANDLE(rl_acquire_all(client, NULL, 0, NULL, err));
  NO_HANDLE(rl_acquire_all(NULL, names, 0, NULL, err));
  CHECK(rl_acquire_all(client, names, 0, NULL, NULL) == NULL); /* It is empty. */
  check_finished_request(rl_acquire_all_start(client, NULL, 0, NULL));
  rl_names_free(names);
  CHECK_INT(0, rl_lease_part_count(NULL));
  CHECK_INT(0, rl_lease_part_fence(NULL, INT32_MIN));
}

static void acquisitions(void) {
  rl_client* client = open_client();
  static const char token[] = "0123456789012345678901";
  NO_HANDLE(rl_acquire(NULL, TEXT("x"), 0, NULL, err));
  NO_HANDLE(rl_acquire(client, NULL, 0, 0, NULL, err));
  NO_HANDLE(rl_acquire(client, NULL, 1, 0, NULL, err));
  NO_HANDLE(rl_acquire(client, "x", SIZE_MAX, 0, NULL, err));
  NO_HANDLE(rl_acquire(client, TEXT("x"), -2, NULL, err));
  CHECK(rl_acquire(NULL, NULL, 0, -2, NULL, NULL) == NULL);
  check_finished_request(rl_acquire_start(NULL, TEXT("x"), 0, NULL));
  check_finished_request(rl_acquire_start(client, NULL, 0, 0, NULL));
  check_finished_request(rl_acquire_start(client, NULL, 3, 0, NULL));
  check_finished_request(rl_acquire_start(client, "x", SIZE_MAX, 0, NULL));
  check_finished_request(rl_acquire_start(client, TEXT("x"), INT64_MIN, NULL));
  NO_HANDLE(rl_rw_acquire_read(NULL, TEXT("x"), 0, NULL, err));
  NO_HANDLE(rl_rw_acquire_read(client, NULL, 0, 0, NULL, err));
  NO_HANDLE(rl_rw_acquire_read(client, TEXT("x"), -2, NULL, err));
  NO_HANDLE(rl_rw_acquire_write(NULL, TEXT("x"), 0, NULL, err));
  NO_HANDLE(rl_rw_acquire_write(client, "x", SIZE_MAX, 0, NULL, err));
  several_names(client);
  check_finished_request(rl_rw_acquire_read_start(NULL, TEXT("x"), 0, NULL));
  check_finished_request(rl_rw_acquire_read_start(client, TEXT("x"), -2, NULL));
  check_finished_request(rl_rw_acquire_write_start(NULL, TEXT("x"), 0, NULL));
  check_finished_request(rl_rw_acquire_write_start(client, NULL, 5, 0, NULL));
  rw_of_another_format(client);
  NO_HANDLE(rl_lease_attach(NULL, TEXT("x"), TEXT(token), 0, NULL, err));
  NO_HANDLE(rl_lease_attach(client, NULL, 1, TEXT(token), 0, NULL, err));
  NO_HANDLE(rl_lease_attach(client, TEXT("x"), NULL, 32, 0, NULL, err));
  NO_HANDLE(rl_lease_attach(client, TEXT("x"), NULL, 0, 0, NULL, err));
  NO_HANDLE(rl_lease_attach(client, TEXT("x"), token, SIZE_MAX, 0, NULL, err));
  NO_HANDLE(
      rl_lease_attach(client, TEXT("x"), TEXT("0123456789012345678901234567890"), 0, NULL, err));
  NO_HANDLE(
      rl_lease_attach(client, TEXT("x"), TEXT("012345678901234567890123456789012"), 0, NULL, err));
  CHECK_INT(0, server_number("EXISTS", "x", NULL));
  rl_client_close(client);
}

static void leases(void) {
  rl_client* client = open_client();
  rl_lease* lease = rl_acquire(client, TEXT("leases"), 0, NULL, err);
  char buffer[8] = "xxxxxxx";
  REQUIRE(lease != NULL);
  INVALID_WITH_ERROR(rl_release(NULL, err));
  INVALID(rl_release(NULL, NULL));
  INVALID_WITH_ERROR(rl_extend(NULL, 1000, err));
  INVALID_WITH_ERROR(rl_extend(lease, -1, err));
  INVALID(rl_extend(lease, INT64_MIN, NULL));
  check_finished_request(rl_release_start(NULL));
  check_finished_request(rl_extend_start(NULL, 1000));
  check_finished_request(rl_extend_start(lease, INT64_MAX));
  rl_lease_free(NULL);
  INVALID_WITH_ERROR(rl_lease_detach(NULL, NULL, 0, err));
  INVALID_WITH_ERROR(rl_lease_detach(NULL, buffer, sizeof buffer, err));
  INVALID_WITH_ERROR(rl_lease_detach(lease, buffer, 32, err));
  INVALID_WITH_ERROR(rl_lease_detach(lease, NULL, 33, err));
  INVALID_WITH_ERROR(rl_lease_detach(lease, buffer, 0, err));
  CHECK_INT(RL_LEASE_HELD, rl_lease_state(lease));
  check_finished_request(rl_lease_detach_start(NULL));
  CHECK_INT(0, rl_lease_state(NULL));
  CHECK_INT(0, rl_lease_remaining_ms(NULL));
  CHECK_INT(0, rl_lease_fence(NULL));
  CHECK_INT(0, rl_lease_name(NULL, buffer, sizeof buffer));
  CHECK_INT(0, buffer[0]);
  CHECK_INT(6, rl_lease_name(lease, buffer, sizeof buffer));
  CHECK_INT(0, strcmp("leases", buffer));
  CHECK_INT(6, rl_lease_name(lease, buffer, 4));
  CHECK_INT(0, strcmp("lea", buffer));
  CHECK_INT(6, rl_lease_name(lease, NULL, 0));
  CHECK_INT(0, rl_lease_token(NULL, buffer, sizeof buffer));
  CHECK_INT(32, rl_lease_token(lease, NULL, 0));
  CHECK_INT(32, rl_lease_token(lease, NULL, 64));
  CHECK_INT(0, rl_lease_hold_count(NULL));
  CHECK_INT(1, rl_lease_hold_count(lease));
  CHECK_INT(1, rl_lease_permits(lease) + rl_lease_permits(NULL));
  CHECK_INT(0, rl_lease_mode(NULL));
  CHECK_INT(RL_MODE_WRITE, rl_lease_mode(lease));
  INVALID_WITH_ERROR(rl_rw_upgrade(NULL, 0, err));
  INVALID_WITH_ERROR(rl_rw_upgrade(lease, -2, err));
  INVALID_WITH_ERROR(rl_rw_downgrade(NULL, err));
  check_finished_request(rl_rw_upgrade_start(NULL, 0));
  check_finished_request(rl_rw_upgrade_start(lease, INT64_MIN));
  check_finished_request(rl_rw_downgrade_start(NULL));
  INVALID_WITH_ERROR(rl_lease_check(NULL, err));
  INVALID(rl_lease_check(NULL, NULL));
  INVALID(rl_lease_wait_lost(NULL, 0));
  INVALID(rl_lease_wait_lost(lease, -2));
  CHECK_INT(RL_LEASE_HELD, rl_lease_state(lease));
  CHECK_INT(RL_OK, rl_release(lease, NULL));
  rl_lease_free(lease);
  rl_client_close(client);
}

static void requests(void) {
  rl_client* client = open_client();
  rl_request* request = rl_acquire_start(client, TEXT("requests"), 0, NULL);
  REQUIRE(request != NULL);
  INVALID(rl_request_wait(NULL, 0));
  INVALID(rl_request_wait(request, -2));
  INVALID(rl_request_wait(request, INT64_MIN));
  INVALID(rl_request_cancel(NULL));
  INVALID(rl_request_status(NULL));
  REQUIRE(rl_request_message(NULL) != NULL);
  CHECK_INT(0, strcmp("", rl_request_message(NULL)));
  CHECK(rl_request_take_lease(NULL) == NULL);
  rl_request_free(NULL);
  CHECK_INT(RL_OK, rl_request_wait(request, 5000));
  rl_request_free(request);
  rl_client_close(client);
}

static void queues(void) {
  rl_client* client = open_client();
  rl_queue* queue = rl_queue_new(err);
  rl_lease* lease = rl_acquire(client, TEXT("queues"), 0, NULL, NULL);
  rl_request* request = rl_acquire_start(client, TEXT("queues"), 0, NULL);
  rl_event event;
  REQUIRE(queue != NULL && lease != NULL && request != NULL);
  INVALID(rl_request_watch(NULL, queue, 1));
  INVALID(rl_request_watch(request, queue, 0));
  INVALID(rl_lease_watch(NULL, queue, 1));
  INVALID(rl_lease_watch(lease, queue, 0));
  INVALID(rl_client_log_watch(NULL, RL_LOG_INFO, queue, 1));
  INVALID(rl_client_log_watch(client, -1, queue, 1));
  INVALID(rl_client_log_watch(client, RL_LOG_INFO + 1, queue, 1));
  INVALID(rl_client_log_watch(client, INT32_MIN, NULL, 0));
  INVALID(rl_client_log_watch(client, RL_LOG_INFO, queue, 0));
  CHECK_INT(RL_OK, rl_client_log_watch(client, RL_LOG_NONE, queue, 0));
  CHECK_INT(RL_OK, rl_client_log_watch(client, RL_LOG_INFO, NULL, 0));
  INVALID(rl_client_credentials_watch(NULL, queue, 1));
  INVALID(rl_client_credentials_watch(client, queue, 0));
  CHECK_INT(RL_OK, rl_client_credentials_watch(client, NULL, 0));
  INVALID(rl_client_credentials_set(NULL, "u", 1, "p", 1, -1, NULL));
  INVALID(rl_client_credentials_set(client, NULL, 1, "p", 1, -1, NULL));
  INVALID(rl_client_credentials_set(client, "u", 1, NULL, 1, -1, NULL));
  INVALID(rl_client_credentials_set(client, "u", 1, "p", 1, INT64_MIN, NULL));
  INVALID(rl_client_credentials_fail(NULL, "x", 1, NULL));
  INVALID(rl_client_credentials_fail(client, NULL, 1, NULL));
  INVALID(rl_queue_post(NULL, 1));
  INVALID(rl_queue_post(queue, 0));
  INVALID(rl_queue_next_event(NULL, -1, &event));
  INVALID(rl_queue_next_event(queue, -1, NULL));
  INVALID(rl_queue_next_event(queue, -2, &event));
  INVALID(rl_queue_next_event(queue, INT64_MIN, &event));
  CHECK_INT(0, rl_queue_next(NULL, -1));
  CHECK_INT(RL_OK, rl_queue_post(queue, -7));
  CHECK_INT(0, rl_queue_next(queue, -2));
  CHECK_INT(0, rl_queue_next(queue, INT64_MIN));
  CHECK_INT(-7, rl_queue_next(queue, -1));
  CHECK_INT(-1, rl_queue_fd(NULL));
  INVALID(rl_queue_drive(NULL, client));
  INVALID(rl_queue_drive(NULL, NULL));
  CHECK_INT(RL_OK, rl_queue_drive(queue, NULL));
  rl_queue_free(NULL);
  check_finished_request(rl_client_connect_start(NULL, 0));
  check_finished_request(rl_client_connect_start(client, -2));
  check_finished_request(rl_client_check_start(NULL, 0));
  check_finished_request(rl_client_check_start(client, -2));
  rl_request_free(request);
  rl_lease_free(lease);
  rl_queue_free(queue);
  rl_client_close(client);
}

/* A queue drives a client of one server; what it is shows without a connection. */
static void a_queue_drives_no_cluster(void) {
  rl_queue* queue = rl_queue_new(err);
  rl_client* cluster = rl_client_open(TEXT("redis+cluster://localhost:1"), NULL, err);
  REQUIRE(queue != NULL && cluster != NULL);
  CHECK_INT(RL_E_UNSUPPORTED, rl_queue_drive(queue, cluster));
  rl_client_close(cluster);
  rl_queue_free(queue);
}

static rl_client* open_redlock(void) {
  rl_client* redlock;
  rl_client_options* options = rl_client_options_new();
  const char* url = server_url();
  CHECK_INT(RL_OK, rl_client_options_set(options, TEXT("restart_guard"), TEXT("off"), err));
  redlock = rl_redlock_open(url, strlen(url), options, err);
  rl_client_options_free(options);
  if (!CHECK(redlock != NULL)) exit(EXIT_FAILURE);
  return redlock;
}

static void redlock_options(void) {
  static const struct {
    const char *name, *allowed, *refused;
  } rows[] = {
      {"restart_guard", "1s", "999ms"}, {"restart_guard", "1h", "61m"},
      {"restart_guard", "off", "0"},    {"durable", "yes", "true"},
      {"fenced", "no", "maybe"},        {"node_timeout", "1ms", "0"},
      {"node_timeout", "auto", "off"},  {"node_timeout", "1m", "61s"},
      {"min_validity", "0", "-1s"},     {"min_validity", "500ms", "auto"},
  };
  size_t i;
  for (i = 0; i < TEST_COUNT(rows); ++i) {
    rl_client_options* options = rl_client_options_new();
    const char* name = rows[i].name;
    const char* value = rows[i].allowed;
    INVALID_WITH_ERROR(rl_client_options_set(options, name, strlen(name), rows[i].refused,
                                             strlen(rows[i].refused), err));
    CHECK_INT(RL_OK, rl_client_options_set(options, name, strlen(name), value, strlen(value), err));
    NO_HANDLE(rl_client_open(TEXT("redis://127.0.0.1"), options, err));
    rl_redlock_close(rl_redlock_open(TEXT("redis://127.0.0.1"), options, err));
    CHECK_INT(RL_OK, rl_error_status(err));
    rl_client_options_free(options);
  }
}

static void redlock_urls(void) {
  NO_HANDLE(rl_redlock_open(NULL, 0, NULL, err));
  NO_HANDLE(rl_redlock_open(NULL, 7, NULL, err));
  NO_HANDLE(rl_redlock_open(TEXT("redis://a redis://b"), NULL, err));
  CHECK(rl_redlock_open(NULL, 0, NULL, NULL) == NULL);
  rl_redlock_close(rl_redlock_open(TEXT("redis://a\n redis://b  redis://c\n"), NULL, err));
  CHECK_INT(RL_OK, rl_error_status(err));
}

static void redlocks(void) {
  rl_client* redlock = open_redlock();
  rl_acquire_options* options = rl_acquire_options_new();
  NO_HANDLE(rl_redlock_acquire(NULL, TEXT("x"), 0, NULL, err));
  NO_HANDLE(rl_redlock_acquire(redlock, NULL, 0, 0, NULL, err));
  NO_HANDLE(rl_redlock_acquire(redlock, "x", SIZE_MAX, 0, NULL, err));
  NO_HANDLE(rl_redlock_acquire(redlock, TEXT("x"), -2, NULL, err));
  CHECK(rl_redlock_acquire(NULL, NULL, 7, -9, NULL, NULL) == NULL);
  check_finished_request(rl_redlock_acquire_start(NULL, TEXT("x"), 0, NULL));
  check_finished_request(rl_redlock_acquire_start(redlock, NULL, 1, 0, NULL));
  check_finished_request(rl_redlock_acquire_start(redlock, TEXT("x"), -2, NULL));
  CHECK_INT(0, rl_client_option(redlock, NULL, 7, NULL, 0));
  CHECK_INT(0, rl_client_option(redlock, TEXT("nonsense"), NULL, 0));
  CHECK_INT(3, rl_client_option(redlock, TEXT("restart_guard"), NULL, 99));
  rl_redlock_close(NULL);
  CHECK_INT(RL_OK, rl_acquire_options_set_owner(options, TEXT("me")));
  CHECK_INT(RL_OK, rl_acquire_options_set_reentrant(options, 1));
  NO_HANDLE(rl_redlock_acquire(redlock, TEXT("x"), 0, options, err));
  check_finished_request(rl_redlock_acquire_start(redlock, TEXT("x"), 0, options));
  rl_acquire_options_free(options);
  options = rl_acquire_options_new();
  CHECK_INT(RL_OK, rl_acquire_options_set_owner(options, TEXT("me")));
  NO_HANDLE(rl_redlock_acquire(redlock, TEXT("x"), 0, options, err));
  rl_acquire_options_free(options);
  options = rl_acquire_options_new();
  CHECK_INT(RL_OK, rl_acquire_options_set_format(options, RL_FORMAT_HASH));
  NO_HANDLE(rl_redlock_acquire(redlock, TEXT("x"), 0, options, err));
  rl_acquire_options_free(options);
  rl_redlock_close(redlock);
}

static void check_no_such_field(const rl_info* info, int32_t part, int32_t index, int32_t field) {
  char buffer[4] = "xxx";
  CHECK_INT(0, rl_info_has(info, part, index, field));
  CHECK_INT(RL_NO_NUMBER, rl_info_number(info, part, index, field));
  CHECK(rl_info_text(info, part, index, field, buffer, sizeof buffer) == RL_NO_TEXT);
  CHECK_INT(0, buffer[0]);
  CHECK(rl_info_text(info, part, index, field, NULL, 0) == RL_NO_TEXT);
}

static void starts_of_looking(rl_client* client) {
  check_finished_request(rl_inspect_start(NULL, TEXT("x")));
  check_finished_request(rl_inspect_start(client, NULL, 1));
  check_finished_request(rl_semaphore_stats_start(NULL, TEXT("x")));
  check_finished_request(rl_semaphore_stats_start(client, NULL, 1));
  check_finished_request(rl_semaphore_set_cap_start(NULL, TEXT("x"), 1, 0));
  check_finished_request(rl_semaphore_set_cap_start(client, NULL, 1, 1, 0));
  check_finished_request(rl_semaphore_set_cap_start(client, TEXT("x"), INT64_MIN, INT64_MAX));
  CHECK(rl_request_take_info(NULL) == NULL);
  check_finished_request(rl_list_next_start(NULL));
  check_finished_request(rl_force_release_start(NULL, TEXT("x"), TEXT("t")));
  check_finished_request(rl_force_release_start(client, TEXT("x"), NULL, 3));
  check_finished_request(rl_force_release_any_start(NULL, TEXT("x")));
  check_finished_request(rl_force_release_any_start(client, "x", SIZE_MAX));
  check_finished_request(rl_lease_attach_start(NULL, TEXT("x"), TEXT("t"), 0, NULL));
  check_finished_request(rl_lease_attach_start(client, TEXT("x"), NULL, 32, 0, NULL));
}

static void looking_and_operating(void) {
  rl_client* client = open_client();
  rl_info* info = rl_inspect(client, TEXT("info"), err);
  static const int32_t nonsense[] = {0, -1, 4, 99, INT32_MAX, INT32_MIN};
  size_t i;
  REQUIRE(info != NULL);
  for (i = 0; i < TEST_COUNT(nonsense); ++i) {
    CHECK_INT(0, rl_info_count(info, nonsense[i]));
    check_no_such_field(info, nonsense[i], 0, RL_FIELD_STATE);
    if (nonsense[i] != 0) check_no_such_field(info, RL_PART_LOCK, nonsense[i], RL_FIELD_NAME);
  }
  check_no_such_field(info, RL_PART_LOCK, 0, 0);
  check_no_such_field(info, RL_PART_LOCK, 0, 12);
  check_no_such_field(info, RL_PART_LOCK, 0, INT32_MIN);
  check_no_such_field(info, RL_PART_LOCK, 0, RL_FIELD_TOKEN);
  check_no_such_field(info, RL_PART_HOLDER, 0, RL_FIELD_TOKEN);
  check_no_such_field(NULL, RL_PART_LOCK, 0, RL_FIELD_NAME);
  check_no_such_field(info, RL_PART_LOCK, 0, RL_PART_HOLDER);
  check_no_such_field(info, RL_FIELD_STATE, 0, RL_FIELD_STATE);
  check_no_such_field(info, RL_PART_SERVER, 0, RL_FIELD_PID);
  CHECK_INT(1, rl_info_has(info, RL_PART_LOCK, 0, RL_FIELD_NAME));
  CHECK_INT(RL_NO_NUMBER, rl_info_number(info, RL_PART_LOCK, 0, RL_FIELD_NAME));
  CHECK_INT(1, rl_info_has(info, RL_PART_LOCK, 0, RL_FIELD_SERVER_MS));
  CHECK(rl_info_text(info, RL_PART_LOCK, 0, RL_FIELD_SERVER_MS, NULL, 0) == RL_NO_TEXT);
  CHECK_INT(0, rl_info_text(info, RL_PART_LOCK, 0, RL_FIELD_OWNER, NULL, 0));
  CHECK_INT(4, rl_info_text(info, RL_PART_LOCK, 0, RL_FIELD_NAME, NULL, 99));
  CHECK_INT(0, rl_info_count(NULL, RL_PART_LOCK));
  rl_info_free(info);
  rl_info_free(NULL);
  NO_HANDLE(rl_client_info(NULL, err));
  NO_HANDLE(rl_client_check(NULL, 0, err));
  CHECK(rl_client_check(NULL, 0, NULL) == NULL);
  CHECK(rl_client_info(NULL, NULL) == NULL);
  CHECK_INT(RL_LOST_NONE, rl_lease_lost_reason(NULL));
  CHECK_INT(0, rl_lease_lost_text(NULL, NULL, 7));
  NO_HANDLE(rl_inspect(NULL, TEXT("x"), err));
  NO_HANDLE(rl_inspect(client, NULL, 0, err));
  NO_HANDLE(rl_inspect(client, "x", SIZE_MAX, err));
  CHECK(rl_inspect(NULL, NULL, 7, NULL) == NULL);
  NO_HANDLE(rl_semaphore_stats(NULL, TEXT("x"), err));
  NO_HANDLE(rl_semaphore_stats(client, "x", SIZE_MAX, err));
  CHECK(rl_semaphore_stats(NULL, NULL, 7, NULL) == NULL);
  INVALID_WITH_ERROR(rl_semaphore_set_cap(NULL, TEXT("x"), 1, 0, err));
  INVALID(rl_semaphore_set_cap(client, NULL, 7, 1, 0, NULL));
  INVALID(rl_acquire_options_set_yield_every(NULL, 1));
  INVALID(rl_acquire_options_set_yield_ms(NULL, 1));
  starts_of_looking(client);
  NO_HANDLE(rl_list_open(NULL, NULL, 0, err));
  INVALID_WITH_ERROR(rl_list_next(NULL, err));
  INVALID(rl_list_next(NULL, NULL));
  CHECK(rl_list_info(NULL) == NULL);
  rl_list_free(NULL);
  CHECK_INT(0, rl_client_log_next(NULL, NULL, 99));
  NO_HANDLE(rl_embedded_inspect(NULL, 0, NULL, err));
  NO_HANDLE(rl_embedded_inspect(NULL, 7, NULL, err));
  NO_HANDLE(rl_embedded_inspect(TEXT("unix:///tmp/x"), NULL, err));
  CHECK(rl_embedded_inspect(TEXT("embedded://host"), NULL, NULL) == NULL);
  INVALID_WITH_ERROR(rl_force_release(NULL, TEXT("x"), TEXT("t"), err));
  INVALID_WITH_ERROR(rl_force_release(client, NULL, 1, TEXT("t"), err));
  INVALID_WITH_ERROR(rl_force_release(client, TEXT(""), TEXT("t"), err));
  INVALID_WITH_ERROR(rl_force_release(client, TEXT("x"), TEXT(""), err));
  INVALID_WITH_ERROR(rl_force_release(client, TEXT("x"), NULL, 0, err));
  INVALID_WITH_ERROR(rl_force_release_any(NULL, TEXT("x"), err));
  INVALID_WITH_ERROR(rl_force_release_any(client, NULL, 1, err));
  INVALID_WITH_ERROR(rl_force_release_any(client, TEXT(""), err));
  INVALID(rl_force_release_any(NULL, NULL, 0, NULL));
  INVALID_WITH_ERROR(rl_force_release(client, TEXT("x"), NULL, 3, err));
  INVALID(rl_force_release(NULL, NULL, 0, NULL, 0, NULL));
  rl_client_close(client);
}

static const struct test tests[] = {
    {"statuses_and_constants", statuses_and_constants},
    {"errors", errors},
    {"client_options", client_options},
    {"acquire_options", acquire_options},
    {"clients", clients},
    {"acquisitions", acquisitions},
    {"leases", leases},
    {"requests", requests},
    {"queues", queues},
    {"a_queue_drives_no_cluster", a_queue_drives_no_cluster},
    {"redlock_options", redlock_options},
    {"redlock_urls", redlock_urls},
    {"redlocks", redlocks},
    {"looking_and_operating", looking_and_operating},
};

int main(int argc, char** argv) {
  int result;
  err = rl_error_new();
  if (err == NULL) return EXIT_FAILURE;
  result = run_tests(tests, TEST_COUNT(tests), argc, argv);
  rl_error_free(err);
  return result;
}
