/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Goal: a listing outlives its client; the log has what no call reports; a lease says why it was
 * lost. Method: one server, one client.
 */
#include "calls.h"
#include "harness.h"
#include "redlatch/redlatch.h"
#include "server.h"

static rl_error* err;

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

int main(int argc, char** argv) {
  static const struct test tests[] = {
      {"list_outlives_its_client", list_outlives_its_client},
      {"log_tells_of_losses_and_keeps_long_lines", log_tells_of_losses_and_keeps_long_lines},
      {"log_tells_of_an_outage_once", log_tells_of_an_outage_once},
      {"lease_says_why_it_was_lost", lease_says_why_it_was_lost},
  };
  int result;
  err = rl_error_new();
  result = run_tests(tests, TEST_COUNT(tests), argc, argv);
  rl_error_free(err);
  return result;
}
