/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Goal: passwords change while a client runs, and no lease ends by that: those that the application
 * gives, and those in a file.
 * Method: an ACL user whose password is rotated, CLIENT LIST for the connection, commandstats for
 * AUTH.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "calls.h"
#include "harness.h"
#include "redlatch/redlatch.h"
#include "server.h"

enum { TAG = 7, LOG_BYTES = 600, CALLER_COUNT = 64, NAME_COUNT = 8 };

static rl_error* err;

/* Of the only connection of the user "app"; 0 without one. */
static int64_t connection_id(void) {
  char list[8192], *line;
  server_command(list, sizeof list, "CLIENT", "LIST", NULL);
  for (line = strtok(list, "\n"); line != NULL; line = strtok(NULL, "\n")) {
    if (strstr(line, "user=app ") != NULL) return strtoll(strstr(line, "id=") + 3, NULL, 10);
  }
  return 0;
}

static int64_t auth_count(void) {
  char stats[16384];
  const char* found;
  server_command(stats, sizeof stats, "INFO", "commandstats", NULL);
  found = strstr(stats, "cmdstat_auth:calls=");
  return found == NULL ? 0 : strtoll(found + strlen("cmdstat_auth:calls="), NULL, 10);
}

static rl_status give(rl_client* client, const char* password, int64_t valid_ms) {
  return rl_client_credentials_set(client, "app", 3, password, strlen(password), valid_ms, err);
}

static rl_lease* take(rl_client* client, const char* name) {
  rl_lease* lease = rl_acquire(client, name, strlen(name), 0, NULL, err);
  CHECK_INT(RL_OK, rl_error_status(err));
  return lease;
}

/* Wait for a line of the log. */
static int is_logged(rl_client* client, const char* part) {
  const int64_t end = now_ms() + 5000;
  char line[LOG_BYTES];
  do {
    while (rl_client_log_next(client, line, sizeof line) > 0) {
      CHECK(strstr(line, "S3cret") == NULL);
      if (strstr(line, part) != NULL) return 1;
    }
    sleep_ms(2);
  } while (now_ms() < end);
  return 0;
}

static void given_at_any_time(void) {
  rl_client* client = server_client();
  rl_lease* lease;
  int64_t id, count;
  set_password("S3cret1");
  CHECK_INT(RL_OK, give(client, "S3cret1", -1));
  lease = take(client, "kept");
  REQUIRE(lease != NULL);
  id = connection_id();
  CHECK(id > 0);
  count = auth_count();
  set_password("S3cret2");
  CHECK_INT(RL_OK, give(client, "S3cret2", -1));
  EVENTUALLY(auth_count() == count + 1, 5000);
  CHECK_INT(RL_OK, rl_extend(lease, 5000, err));
  CHECK_INT(id, connection_id());
  /* The next connection has the new password, too. */
  kill_connections();
  CHECK_INT(RL_OK, rl_extend(lease, 5000, err));
  CHECK(connection_id() != id);
  CHECK_INT(RL_OK, rl_release(lease, err));
  rl_lease_free(lease);
  rl_client_close(client);
}

struct caller {
  pthread_t thread;
  rl_client* client;
  char name[16];
};

static atomic_int stops;
static atomic_int taken_count;

/* Each takes its lock again and again, which seven others want as well. */
static void* call_until_stopped(void* argument) {
  struct caller* self = (struct caller*)argument;
  while (!atomic_load(&stops)) {
    rl_lease* lease = rl_acquire(self->client, self->name, strlen(self->name), 60000, NULL, NULL);
    if (!CHECK(lease != NULL)) break;
    atomic_fetch_add(&taken_count, 1);
    give_back(lease);
  }
  return NULL;
}

static void callers_during_changes(void) {
  static struct caller callers[CALLER_COUNT];
  rl_client* client = server_client();
  int64_t id, count;
  int i;
  set_password("S3cret0");
  CHECK_INT(RL_OK, give(client, "S3cret0", -1));
  CHECK_INT(RL_OK, rl_client_connect(client, 10000, err));
  id = connection_id();
  count = auth_count();
  for (i = 0; i < CALLER_COUNT; ++i) {
    callers[i].client = client;
    snprintf(callers[i].name, sizeof callers[i].name, "crowd-%d", i % NAME_COUNT);
    CHECK_INT(0, pthread_create(&callers[i].thread, NULL, call_until_stopped, &callers[i]));
  }
  for (i = 1; i <= 5; ++i) {
    char password[32];
    const int before = atomic_load(&taken_count);
    snprintf(password, sizeof password, "S3cret%d", i);
    set_password(password);
    CHECK_INT(RL_OK, give(client, password, -1));
    EVENTUALLY(auth_count() == count + i, 20000);
    EVENTUALLY(atomic_load(&taken_count) > before + CALLER_COUNT, 20000);
  }
  atomic_store(&stops, 1);
  for (i = 0; i < CALLER_COUNT; ++i) pthread_join(callers[i].thread, NULL);
  CHECK_INT(id, connection_id());
  rl_client_close(client);
}

static void answers_of_no_use(void) {
  rl_client* client = client_with("connect_timeout=200ms");
  rl_queue* queue = rl_queue_new(err);
  rl_request* request;
  set_password("S3cret1");
  CHECK_INT(RL_OK, rl_client_credentials_watch(client, queue, TAG));
  /* None. */
  CHECK_INT(RL_E_UNAVAILABLE, rl_client_connect(client, 0, err));
  CHECK_HAS("has not given credentials in time", rl_error_message(err));
  CHECK_HAS(server_url(), rl_error_message(err));
  CHECK_INT(TAG, rl_queue_next(queue, 5000));
  /* A failure, with a reason. */
  CHECK_INT(RL_OK, rl_client_credentials_fail(client, "vault is sealed", 15, err));
  CHECK_INT(RL_E_UNAVAILABLE, rl_client_connect(client, 0, err));
  CHECK_HAS("vault is sealed", rl_error_message(err));
  /* Wrong ones; it is asked again. */
  request = rl_client_connect_start(client, 20000);
  CHECK_INT(TAG, rl_queue_next(queue, 10000));
  CHECK_INT(RL_OK, give(client, "S3cretWrong", -1));
  CHECK_INT(RL_E_DENIED, rl_request_wait(request, 20000));
  CHECK(strstr(rl_request_message(request), "S3cret") == NULL);
  rl_request_free(request);
  request = rl_client_connect_start(client, 20000);
  CHECK_INT(TAG, rl_queue_next(queue, 10000));
  /* Late ones. */
  CHECK_INT(RL_OK, give(client, "S3cret1", -1));
  CHECK_INT(RL_OK, rl_request_wait(request, 20000));
  CHECK_INT(RL_OK, rl_request_status(request));
  rl_request_free(request);
  CHECK(is_logged(client, "has not given credentials"));
  rl_client_close(client);
  rl_queue_free(queue);
}

static void refused_on_a_live_connection(void) {
  rl_client* client = server_client();
  rl_queue* queue = rl_queue_new(err);
  rl_lease* lease;
  int64_t id;
  set_password("S3cret1");
  CHECK_INT(RL_OK, rl_client_credentials_watch(client, queue, TAG));
  CHECK_INT(RL_OK, give(client, "S3cret1", -1));
  lease = take(client, "refused");
  REQUIRE(lease != NULL);
  id = connection_id();
  CHECK_INT(RL_OK, give(client, "S3cretWrong", -1));
  CHECK_INT(TAG, rl_queue_next(queue, 10000));
  CHECK(is_logged(client, "refused the new credentials (WRONGPASS)"));
  CHECK_INT(RL_OK, rl_extend(lease, 5000, err));
  CHECK_INT(id, connection_id());
  CHECK_INT(RL_OK, give(client, "S3cret1", -1));
  CHECK_INT(RL_OK, rl_release(lease, err));
  rl_lease_free(lease);
  rl_client_close(client);
  rl_queue_free(queue);
}

/* Old credentials are refused when the connection is made anew: the application is asked, and its
   answer is used in the same attempt. */
static void replaced_while_connected(void) {
  rl_client* client = server_client();
  rl_queue* queue = rl_queue_new(err);
  rl_lease* lease;
  set_password("S3cret1");
  CHECK_INT(RL_OK, rl_client_credentials_watch(client, queue, TAG));
  CHECK_INT(RL_OK, give(client, "S3cret1", -1));
  lease = take(client, "replaced");
  REQUIRE(lease != NULL);
  set_password("S3cret2");
  kill_connections();
  CHECK_INT(TAG, rl_queue_next(queue, 10000));
  CHECK_INT(RL_OK, give(client, "S3cret2", -1));
  EVENTUALLY(connection_id() > 0, 10000);
  CHECK_INT(RL_OK, rl_extend(lease, 5000, err));
  rl_lease_free(lease);
  rl_client_close(client);
  rl_queue_free(queue);
}

static void closed_while_asked(void) {
  rl_client* client = server_client();
  rl_queue* queue = rl_queue_new(err);
  rl_request* request;
  CHECK_INT(RL_OK, rl_client_credentials_watch(client, queue, TAG));
  request = rl_client_connect_start(client, -1);
  CHECK_INT(TAG, rl_queue_next(queue, 10000));
  rl_client_shutdown(client);
  CHECK_INT(RL_E_CLOSED, rl_request_status(request));
  CHECK_INT(RL_E_CLOSED, give(client, "S3cret1", -1));
  CHECK_INT(RL_E_CLOSED, rl_client_credentials_fail(client, "x", 1, err));
  CHECK_INT(RL_OK, rl_client_credentials_watch(client, NULL, 0));
  rl_request_free(request);
  rl_client_close(client);
  rl_queue_free(queue);
}

static void every_node_and_every_connection(void) {
  char urls[512] = "";
  rl_client* client;
  rl_client_options* durable = rl_client_options_new();
  rl_acquire_options* options = rl_acquire_options_new();
  rl_lease* lease;
  int64_t counts[3], count;
  size_t i;
  for (i = 0; i < 3; ++i) {
    server_select(i);
    snprintf(urls + strlen(urls), sizeof urls - strlen(urls), "%s ", server_url());
    set_password("S3cret1");
    counts[i] = auth_count();
  }
  rl_client_options_set(durable, "durable", 7, "yes", 3, err);
  client = rl_redlock_open(urls, strlen(urls) - 1, durable, err);
  rl_client_options_free(durable);
  REQUIRE(client != NULL);
  CHECK_INT(RL_OK, give(client, "S3cret1", -1));
  lease = rl_redlock_acquire(client, "votes", 5, 5000, NULL, err);
  CHECK_INT(RL_OK, rl_error_status(err));
  CHECK_INT(RL_OK, give(client, "S3cret1", -1));
  for (i = 0; i < 3; ++i) {
    server_select(i);
    EVENTUALLY(auth_count() == counts[i] + 1, 5000);
  }
  rl_release(lease, err);
  rl_lease_free(lease);
  rl_redlock_close(client);
  server_select(0);

  /* The connection for WAIT, which counts no replica here. */
  client = server_client();
  CHECK_INT(RL_OK, give(client, "S3cret1", -1));
  rl_acquire_options_set(options, "min_replicas", 12, "1", 1, err);
  rl_acquire_options_set(options, "sync_timeout", 12, "1ms", 3, err);
  CHECK(rl_acquire(client, "wait", 4, 0, options, err) == NULL);
  CHECK_INT(RL_E_NOT_REPLICATED, rl_error_status(err));
  count = auth_count();
  CHECK_INT(RL_OK, give(client, "S3cret1", -1));
  EVENTUALLY(auth_count() == count + 2, 5000);
  rl_client_close(client);
  rl_acquire_options_free(options);
}

static void bad_arguments(void) {
  rl_client* client = server_client();
  rl_client* embedded = rl_client_open("embedded://", 11, NULL, err);
  rl_queue* queue = rl_queue_new(err);
  CHECK_INT(RL_E_INVALID, give(client, "", -1));
  CHECK_HAS("password must be 1 to 65536 bytes (got 0)", rl_error_message(err));
  CHECK_INT(RL_E_INVALID, give(client, "S3cret1", 999));
  CHECK_HAS("valid_ms must be 1000 or more, or -1 for no end (got 999)", rl_error_message(err));
  if (embedded != NULL) {
    CHECK_INT(RL_E_INVALID, give(embedded, "S3cret1", -1));
    CHECK_INT(RL_E_INVALID, rl_client_credentials_watch(embedded, queue, TAG));
    rl_client_close(embedded);
  }
  rl_client_close(client);
  rl_queue_free(queue);
}

static void write_file(const char* path, const char* text) {
  FILE* file = fopen(path, "w");
  if (!CHECK(file != NULL)) return;
  fputs(text, file);
  fclose(file);
}

static void file_that_is_rotated(void) {
  char folder[] = "/tmp/redlatch-file-XXXXXX";
  char path[64], options[128];
  rl_client* client;
  rl_lease* lease;
  int64_t id;
  REQUIRE(mkdtemp(folder) != NULL);
  snprintf(path, sizeof path, "%s/password", folder);
  set_password("S3cret1");
  write_file(path, "S3cret1\n");
  snprintf(options, sizeof options, "user=app&password_file=%s", path);
  client = client_with(options);
  REQUIRE(client != NULL);
  lease = take(client, "file");
  REQUIRE(lease != NULL);
  id = connection_id();
  set_password("S3cret2");
  /* Missing, empty, too long, and no regular file: the attempt fails, and is repeated. */
  unlink(path);
  kill_connections();
  CHECK(is_logged(client, "cannot read the password file"));
  CHECK_INT(RL_E_UNAVAILABLE, rl_client_connect(client, 0, err));
  CHECK_HAS("No such file or directory", rl_error_message(err));
  CHECK_HAS(path, rl_error_message(err));
  write_file(path, "\n");
  CHECK_INT(RL_E_UNAVAILABLE, rl_client_connect(client, 0, err));
  CHECK_HAS("its first line is empty", rl_error_message(err));
  unlink(path);
  CHECK_INT(0, mkfifo(path, 0600));
  CHECK_INT(RL_E_UNAVAILABLE, rl_client_connect(client, 0, err));
  CHECK_HAS("it must be a regular file", rl_error_message(err));
  unlink(path);
  write_file(path, "S3cret2\n");
  CHECK_INT(RL_OK, rl_client_connect(client, 10000, err));
  CHECK(connection_id() != id);
  CHECK_INT(RL_OK, rl_extend(lease, 5000, err));
  CHECK_INT(RL_OK, rl_release(lease, err));
  rl_lease_free(lease);
  rl_client_close(client);
  unlink(path);
  rmdir(folder);
}

static const struct test tests[] = {
    {"given_at_any_time", given_at_any_time},
    {"callers_during_changes", callers_during_changes},
    {"answers_of_no_use", answers_of_no_use},
    {"refused_on_a_live_connection", refused_on_a_live_connection},
    {"replaced_while_connected", replaced_while_connected},
    {"closed_while_asked", closed_while_asked},
    {"every_node_and_every_connection", every_node_and_every_connection},
    {"bad_arguments", bad_arguments},
    {"file_that_is_rotated", file_that_is_rotated},
};

int main(int argc, char** argv) {
  int result;
  err = rl_error_new();
  result = run_tests(tests, TEST_COUNT(tests), argc, argv);
  rl_error_free(err);
  return result;
}
