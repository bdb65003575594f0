/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Goal: a listing shows each held lock once and leaves other keys alone; the log tells what no call
 * reports; client and lease say what became of them. Method: one server, one client.
 */
#include <stdlib.h>

#include "calls.h"
#include "harness.h"
#include "redlatch/redlatch.h"
#include "server.h"

enum { LOCK_COUNT = 40 };

static rl_error* err;

/* How many locks a listing shows; the last name goes to `name`. */
static int listed(rl_client* client, const char* pattern, char* name, size_t name_size) {
  rl_list* list = rl_list_open(client, pattern, strlen(pattern), err);
  rl_status status;
  int count = 0;
  if (!CHECK(list != NULL)) return -1;
  CHECK(rl_list_info(list) == NULL);
  while ((status = rl_list_next(list, err)) == RL_OK) {
    const rl_info* info = rl_list_info(list);
    count++;
    CHECK_INT(RL_STATE_HELD, rl_info_number(info, RL_PART_LOCK, 0, RL_FIELD_STATE));
    CHECK(rl_info_text(info, RL_PART_LOCK, 0, RL_FIELD_NAME, name, name_size) > 0);
    CHECK(rl_list_info(list) == info);
  }
  CHECK_INT(RL_END, status);
  CHECK_INT(RL_END, rl_list_next(list, NULL));
  CHECK(rl_list_info(list) == NULL);
  rl_list_free(list);
  return count;
}

static void list_shows_each_held_lock_once(void) {
  rl_client* client = client_with("namespace=list%2A%5B:");
  rl_client* stranger = client_with("namespace=other:");
  rl_lease* leases[LOCK_COUNT];
  rl_lease* foreign = rl_acquire(stranger, TEXT("lock-1"), 0, NULL, err);
  char name[64];
  int i;
  CHECK(foreign != NULL);
  for (i = 0; i < LOCK_COUNT; i++) {
    snprintf(name, sizeof name, "lock-%d", i);
    leases[i] = rl_acquire(client, name, strlen(name), 0, NULL, err);
    CHECK(leases[i] != NULL);
  }
  CHECK_INT(LOCK_COUNT, listed(client, "", name, sizeof name));
  CHECK_INT(10, listed(client, "lock-3?", name, sizeof name));
  CHECK_INT(1, listed(client, "lock-17", name, sizeof name));
  CHECK(strcmp(name, "lock-17") == 0);
  CHECK_INT(0, listed(client, "nothing", name, sizeof name));
  for (i = 0; i < LOCK_COUNT; i++) rl_lease_free(leases[i]);
  EVENTUALLY(listed(client, "", name, sizeof name) == 0, 5000);
  rl_lease_free(foreign);
  rl_client_close(stranger);
  rl_client_close(client);
}

static void list_outlives_its_client(void) {
  rl_client* client = client_with("namespace=list:");
  rl_list* list = rl_list_open(client, NULL, 0, err);
  char pattern[RL_MAX_NAME_BYTES + 1];
  CHECK(list != NULL);
  memset(pattern, 'a', sizeof pattern);
  CHECK(rl_list_open(client, pattern, sizeof pattern, err) == NULL);
  CHECK_INT(RL_E_INVALID, rl_error_status(err));
  rl_client_close(client);
  CHECK_INT(RL_E_CLOSED, rl_list_next(list, err));
  CHECK_INT(RL_E_CLOSED, rl_error_status(err));
  CHECK(rl_list_info(list) == NULL);
  rl_list_free(list);
}

/* Until a line with `part` comes; other lines are dropped. */
static int log_has(rl_client* client, const char* part) {
  char line[1024];
  while (rl_client_log_next(client, line, sizeof line) > 0) {
    if (strstr(line, part) != NULL) return 1;
  }
  return 0;
}

static int log_gets(rl_client* client, const char* part) {
  const int64_t limit = now_ms() + 20000;
  while (now_ms() < limit) {
    if (log_has(client, part)) return 1;
    sleep_ms(2);
  }
  return 0;
}

static void log_tells_of_losses_and_keeps_long_lines(void) {
  rl_client* client = client_with("namespace=log:");
  rl_acquire_options* options = rl_acquire_options_new();
  rl_lease* lease;
  char line[1024];
  size_t size;
  empty_log(client);
  CHECK_INT(0, rl_client_log_next(client, line, sizeof line));
  CHECK_INT(RL_OK, rl_acquire_options_set_ttl_ms(options, 500));
  CHECK_INT(RL_OK, rl_acquire_options_set_renew(options, 0));
  lease = rl_acquire(client, TEXT("short"), 0, options, err);
  CHECK_INT(RL_LEASE_LOST, rl_lease_wait_lost(lease, 5000));
  EVENTUALLY(rl_client_log_next(client, NULL, 0) > 0, 5000);
  size = rl_client_log_next(client, line, 3);
  CHECK(size > 3);
  CHECK_INT(size, rl_client_log_next(client, line, sizeof line));
  CHECK_HAS("error lock 'short' was lost", line);
  rl_lease_free(lease);
  rl_acquire_options_free(options);
  rl_client_close(client);
}

static void log_tells_of_an_outage_once(void) {
  rl_client* client = client_with("namespace=log:");
  rl_lease* lease;
  CHECK_INT(RL_OK, rl_client_connect(client, -1, err));
  empty_log(client);
  server_kill();
  /* Until it has noticed, it counts as connected. */
  EVENTUALLY(rl_client_connect(client, 100, err) == RL_E_UNAVAILABLE, 20000);
  CHECK(log_gets(client, "warning cannot reach"));
  CHECK(!log_has(client, "warning cannot reach"));
  CHECK(server_url() != NULL);
  lease = rl_acquire(client, TEXT("back"), 20000, NULL, err);
  CHECK(lease != NULL);
  CHECK(log_gets(client, "info connected to"));
  rl_lease_free(lease);
  rl_client_close(client);
}

/* One server: its row before, while and after it can be reached. */
static void client_knows_its_server(void) {
  rl_client* client = client_with("namespace=node:");
  rl_info* info = rl_client_info(client, err);
  rl_lease* lease;
  char text[256];
  REQUIRE(info != NULL);
  CHECK_INT(1, rl_info_count(info, RL_PART_NODE));
  CHECK_INT(0, rl_info_count(info, RL_PART_LOCK));
  CHECK_INT(RL_NODE_UNKNOWN, rl_info_number(info, RL_PART_NODE, 0, RL_FIELD_STATE));
  CHECK_INT(0, rl_info_text(info, RL_PART_NODE, 0, RL_FIELD_VERSION, text, sizeof text));
  CHECK(rl_info_text(info, RL_PART_NODE, 0, RL_FIELD_ADDRESS, text, sizeof text) > 0);
  CHECK_HAS(text, server_url());
  rl_info_free(info);
  lease = rl_acquire(client, TEXT("node"), 20000, NULL, err);
  REQUIRE(lease != NULL);
  CHECK_INT(RL_OK, rl_release(lease, err));
  rl_lease_free(lease);
  info = rl_client_info(client, err);
  CHECK_INT(RL_NODE_UP, rl_info_number(info, RL_PART_NODE, 0, RL_FIELD_STATE));
  CHECK_INT(RL_ROLE_PRIMARY, rl_info_number(info, RL_PART_NODE, 0, RL_FIELD_ROLE));
  CHECK_INT(1, rl_info_has(info, RL_PART_NODE, 0, RL_FIELD_CLOCK_MS));
  CHECK(llabs((long long)rl_info_number(info, RL_PART_NODE, 0, RL_FIELD_CLOCK_MS)) < 30000);
  CHECK(rl_info_text(info, RL_PART_NODE, 0, RL_FIELD_VERSION, text, sizeof text) > 0);
  CHECK(strncmp(text, "Redis ", 6) == 0 || strncmp(text, "Valkey ", 7) == 0);
  CHECK_INT(0, rl_info_text(info, RL_PART_NODE, 0, RL_FIELD_REASON, text, sizeof text));
  CHECK_INT(0, rl_info_has(info, RL_PART_NODE, 1, RL_FIELD_STATE));
  rl_info_free(info);
  server_kill();
  EVENTUALLY(rl_client_connect(client, 100, err) == RL_E_UNAVAILABLE, 20000);
  info = rl_client_info(client, err);
  CHECK_INT(RL_NODE_AWAY, rl_info_number(info, RL_PART_NODE, 0, RL_FIELD_STATE));
  CHECK(rl_info_text(info, RL_PART_NODE, 0, RL_FIELD_REASON, text, sizeof text) > 0);
  CHECK_HAS("cannot reach", text);
  rl_info_free(info);
  CHECK(server_url() != NULL);
  rl_client_close(client);
}

/* The number, and its words in `text`. */
#define LOST(lease, text) \
  (rl_lease_lost_text(lease, text, sizeof(text)), rl_lease_lost_reason(lease))

static void lease_says_why_it_was_lost(void) {
  rl_client* client = client_with("namespace=why:");
  rl_acquire_options* options = rl_acquire_options_new();
  rl_queue* queue = rl_queue_new(err);
  rl_lease* lease;
  char text[256] = "x";
  CHECK_INT(RL_LOST_NONE, LOST(NULL, text));
  CHECK_INT(0, strlen(text));
  rl_acquire_options_set_ttl_ms(options, 100);
  rl_acquire_options_set_renew(options, 0);
  lease = rl_acquire(client, TEXT("a"), 20000, options, err);
  REQUIRE(lease != NULL);
  CHECK_INT(RL_OK, rl_lease_watch(lease, queue, 1));
  CHECK_INT(1, rl_queue_next(queue, 20000));
  CHECK_INT(RL_LOST_EXPIRED, LOST(lease, text));
  CHECK_HAS("renewal is off", text);
  CHECK_INT(RL_LOST_EXPIRED, rl_lease_lost_reason(lease));
  rl_lease_free(lease);
  rl_acquire_options_set_ttl_ms(options, 20000);
  rl_acquire_options_set_renew(options, 1);
  rl_acquire_options_set_max_hold_ms(options, 50);
  lease = rl_acquire(client, TEXT("b"), 20000, options, err);
  REQUIRE(lease != NULL);
  CHECK_INT(RL_LEASE_LOST, rl_lease_wait_lost(lease, 20000));
  CHECK_INT(RL_LOST_MAX_HOLD, rl_lease_lost_reason(lease));
  rl_lease_free(lease);
  rl_acquire_options_set_max_hold_ms(options, 0);
  lease = rl_acquire(client, TEXT("c"), 20000, options, err);
  REQUIRE(lease != NULL);
  CHECK_INT(RL_LOST_NONE, LOST(lease, text));
  CHECK_INT(1, server_number("DEL", "why:c", NULL));
  CHECK_INT(RL_E_LOST, rl_extend(lease, 20000, err));
  CHECK_INT(RL_LOST_GONE, LOST(lease, text));
  CHECK_HAS("DEL or FLUSHALL", text);
  rl_lease_free(lease);
  lease = rl_acquire(client, TEXT("d"), 20000, options, err);
  CHECK_INT(RL_OK, rl_release(lease, err));
  CHECK_INT(RL_LOST_NONE, LOST(lease, text));
  rl_lease_free(lease);
  rl_queue_free(queue);
  rl_acquire_options_free(options);
  rl_client_close(client);
}

static void environment_is_read_when_asked(void) {
  rl_client_options* options = rl_client_options_new();
  rl_client* client;
  char text[256];
  setenv("REDLATCH_URL", "redis://from-env:1", 1);
  CHECK(rl_client_open(NULL, 0, options, err) == NULL);
  CHECK_INT(RL_E_INVALID, rl_error_status(err));
  CHECK_HAS("no server was named: give a URL", rl_error_message(err));
  CHECK_INT(RL_OK, rl_client_options_set_from_env(options, err));
  client = rl_client_open(NULL, 0, options, err);
  CHECK(client != NULL);
  CHECK(rl_client_option(client, TEXT("url"), text, sizeof text) > 0);
  CHECK(strcmp(text, "redis://from-env:1") == 0);
  CHECK_INT(0, rl_client_option(client, TEXT("password"), text, sizeof text));
  rl_client_close(client);
  unsetenv("REDLATCH_URL");
  rl_client_options_free(options);
}

int main(int argc, char** argv) {
  static const struct test tests[] = {
      {"list_shows_each_held_lock_once", list_shows_each_held_lock_once},
      {"list_outlives_its_client", list_outlives_its_client},
      {"log_tells_of_losses_and_keeps_long_lines", log_tells_of_losses_and_keeps_long_lines},
      {"log_tells_of_an_outage_once", log_tells_of_an_outage_once},
      {"client_knows_its_server", client_knows_its_server},
      {"lease_says_why_it_was_lost", lease_says_why_it_was_lost},
      {"environment_is_read_when_asked", environment_is_read_when_asked},
  };
  int result;
  err = rl_error_new();
  result = run_tests(tests, TEST_COUNT(tests), argc, argv);
  rl_error_free(err);
  return result;
}
