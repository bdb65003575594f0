/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Goal: what looks at locks, takes them by force or attaches them can be started without waiting;
 * a cancel leaves nothing behind; a lease that was attached for nobody can be attached again.
 * Method: one server, which is paused where a request has to be pending; results by a queue.
 */
#include <pthread.h>
#include <signal.h>

#include "calls.h"
#include "harness.h"
#include "redlatch/redlatch.h"
#include "server.h"

enum { LOCK_COUNT = 12, WAIT_MS = 10000, TOKEN_SIZE = 33 };

/* The result of `request`, once its tag has come. */
static rl_status watched(rl_request* request) {
  static int64_t tag;
  rl_queue* queue = rl_queue_new(NULL);
  rl_status status = RL_E_INTERNAL;
  if (CHECK(request != NULL && queue != NULL)) {
    CHECK_INT(RL_OK, rl_request_watch(request, queue, ++tag));
    CHECK_INT(tag, rl_queue_next(queue, WAIT_MS));
    status = rl_request_status(request);
  }
  rl_queue_free(queue);
  return status;
}

static rl_status ended(rl_request* request) {
  const rl_status status = watched(request);
  rl_request_free(request);
  return status;
}

static void an_inspection_is_started(void) {
  rl_client* client = server_client();
  rl_lease* lease = rl_acquire(client, TEXT("looked at"), 0, NULL, NULL);
  rl_request* request = rl_inspect_start(client, TEXT("looked at"));
  rl_info* info;
  CHECK_INT(RL_OK, watched(request));
  CHECK(rl_request_take_lease(request) == NULL);
  info = rl_request_take_info(request);
  CHECK(rl_request_take_info(request) == NULL);
  rl_request_free(request);
  CHECK_INT(RL_STATE_HELD, rl_info_number(info, RL_PART_LOCK, 0, RL_FIELD_STATE));
  CHECK_INT(rl_lease_fence(lease), rl_info_number(info, RL_PART_LOCK, 0, RL_FIELD_FENCE));
  rl_info_free(info);

  CHECK_INT(RL_E_INVALID, ended(rl_inspect_start(client, TEXT(""))));
  request = rl_inspect_start(client, TEXT("looked at"));
  rl_request_free(request); /* Never taken. */
  rl_client_shutdown(client);
  request = rl_inspect_start(client, TEXT("looked at"));
  CHECK_INT(RL_E_CLOSED, watched(request));
  CHECK(rl_request_take_info(request) == NULL);
  rl_request_free(request);
  rl_lease_free(lease);
  rl_client_close(client);
}

static void a_forced_release_is_started(void) {
  rl_client* client = server_client();
  rl_lease* lease = rl_acquire(client, TEXT("forced"), 0, NULL, NULL);
  char token[TOKEN_SIZE];
  rl_lease_token(lease, token, sizeof token);
  CHECK_INT(RL_E_INVALID, ended(rl_force_release_start(client, TEXT("forced"), TEXT(""))));
  CHECK_INT(RL_E_NOT_HELD, ended(rl_force_release_start(client, TEXT("forced"), TEXT("other"))));
  CHECK_INT(1, server_number("EXISTS", "forced", NULL));
  CHECK_INT(RL_OK, ended(rl_force_release_start(client, TEXT("forced"), token, strlen(token))));
  CHECK_INT(0, server_number("EXISTS", "forced", NULL));
  rl_lease_free(lease);
  lease = rl_acquire(client, TEXT("forced"), 0, NULL, NULL);
  CHECK_INT(RL_OK, ended(rl_force_release_any_start(client, TEXT("forced"))));
  CHECK_INT(0, server_number("EXISTS", "forced", NULL));
  CHECK_INT(RL_E_NOT_HELD, ended(rl_force_release_any_start(client, TEXT("forced"))));
  rl_lease_free(lease);
  rl_client_close(client);
}

/* The number in the name of the row. */
static int number_of(const rl_list* list) {
  char name[32] = "";
  int number = -1;
  rl_info_text(rl_list_info(list), RL_PART_LOCK, 0, RL_FIELD_NAME, name, sizeof name);
  CHECK_INT(1, sscanf(name, "row-%d", &number));
  return number >= 0 && number < LOCK_COUNT ? number : 0;
}

static void a_list_goes_on_by_requests(void) {
  rl_client* client = server_client();
  rl_list* list = rl_list_open(client, TEXT("row-*"), NULL);
  rl_lease* leases[LOCK_COUNT];
  int seen[LOCK_COUNT] = {0}, count = 0, i;
  rl_request *request, *second;
  char name[32];
  for (i = 0; i < LOCK_COUNT; ++i) {
    snprintf(name, sizeof name, "row-%d", i);
    leases[i] = rl_acquire(client, name, strlen(name), 0, NULL, NULL);
  }
  CHECK_INT(0, rl_list_info(list) != NULL);
  for (;;) {
    /* Every other step is cancelled while the server is silent, and skips nothing. */
    kill(server_pid(), SIGSTOP);
    request = rl_list_next_start(list);
    CHECK_INT(RL_PENDING, rl_request_status(request));
    CHECK(rl_list_info(list) == NULL);
    second = rl_list_next_start(list);
    CHECK_INT(RL_E_INVALID, rl_request_status(second));
    rl_request_free(second);
    CHECK_INT(RL_E_INVALID, rl_list_next(list, NULL));
    CHECK_INT(RL_CANCELLED, rl_request_cancel(request));
    rl_request_free(request);
    kill(server_pid(), SIGCONT);
    if ((count % 2 ? rl_list_next(list, NULL) : ended(rl_list_next_start(list))) != RL_OK) break;
    CHECK_INT(1, ++seen[number_of(list)]);
    if (++count == LOCK_COUNT) break; /* The end needs no server: nothing would be pending. */
  }
  CHECK_INT(LOCK_COUNT, count);
  CHECK_INT(RL_END, ended(rl_list_next_start(list)));
  CHECK(rl_list_info(list) == NULL);
  CHECK_INT(RL_END, rl_list_next(list, NULL));
  rl_list_free(list);

  list = rl_list_open(client, TEXT("row-*"), NULL);
  kill(server_pid(), SIGSTOP);
  request = rl_list_next_start(list);
  rl_list_free(list); /* Before its request. */
  kill(server_pid(), SIGCONT);
  CHECK_INT(RL_OK, ended(request));
  for (i = 0; i < LOCK_COUNT; ++i) rl_lease_free(leases[i]);
  rl_client_close(client);
}

static void detached(rl_client* client, const char* name, char* token, int64_t* fence) {
  rl_lease* lease = rl_acquire(client, name, strlen(name), 0, NULL, NULL);
  *fence = rl_lease_fence(lease);
  CHECK_INT(RL_OK, rl_lease_detach(lease, token, TOKEN_SIZE, NULL));
  rl_lease_free(lease);
}

static rl_request* attach(rl_client* client, const char* name, const char* token, int64_t fence,
                          const rl_acquire_options* options) {
  return rl_lease_attach_start(client, name, strlen(name), token, strlen(token), fence, options);
}

static void an_attach_is_started(void) {
  rl_client* client = server_client();
  rl_acquire_options* options = rl_acquire_options_new();
  rl_request* request;
  rl_lease* lease;
  char token[TOKEN_SIZE];
  int64_t fence;
  detached(client, "attached", token, &fence);
  CHECK_INT(RL_E_INVALID, ended(attach(client, "attached", token, -1, NULL)));
  CHECK_INT(RL_OK, rl_acquire_options_set_owner(options, TEXT("me")));
  CHECK_INT(RL_E_INVALID, ended(attach(client, "attached", token, fence, options)));
  rl_acquire_options_free(options);
  options = rl_acquire_options_new();
  CHECK_INT(RL_OK, rl_acquire_options_set_format(options, RL_FORMAT_HASH));
  CHECK_INT(RL_E_INVALID, ended(attach(client, "attached", token, fence, options)));
  rl_acquire_options_free(options);
  options = rl_acquire_options_new();
  CHECK_INT(RL_E_INVALID, rl_acquire_options_set_ttl_ms(options, 5));
  request = attach(client, "attached", token, fence, options);
  CHECK_INT(RL_E_INVALID, rl_request_status(request));
  CHECK_HAS("ttl", rl_request_message(request));
  rl_request_free(request);
  rl_acquire_options_free(options);
  options = rl_acquire_options_new();
  CHECK_INT(RL_OK, rl_acquire_options_set_ttl_ms(options, 3600000));
  request = attach(client, "attached", token, fence, options);
  rl_acquire_options_free(options);
  CHECK_INT(RL_OK, watched(request));
  lease = rl_request_take_lease(request);
  CHECK(rl_request_take_lease(request) == NULL);
  rl_request_free(request);
  REQUIRE(lease != NULL);
  CHECK_INT(fence, rl_lease_fence(lease));
  CHECK(rl_lease_remaining_ms(lease) > 3000000);
  CHECK(server_number("PTTL", "attached", NULL) > 3000000);
  CHECK_INT(RL_E_NOT_HELD, ended(attach(client, "attached", token, fence, NULL)));
  give_back(lease);
  CHECK_INT(0, server_number("EXISTS", "attached", NULL));
  rl_client_close(client);
}

static rl_lease* attached(rl_client* client, const char* name, const char* token) {
  return rl_lease_attach(client, name, strlen(name), token, strlen(token), 0, NULL, NULL);
}

static void* shut_down(void* client) {
  rl_client_shutdown(client);
  return NULL;
}

static void an_attach_for_nobody_is_undone(void) {
  enum { NOT_TAKEN, CANCELLED, FREED, CANCELLED_AND_SHUT_DOWN, SHUT_DOWN, WAY_COUNT };
  char token[TOKEN_SIZE], reply[64];
  int64_t fence;
  int way;
  for (way = 0; way < WAY_COUNT; ++way) {
    rl_client* client = server_client();
    rl_client* other = server_client();
    rl_request* request;
    detached(client, "undone", token, &fence);
    /* The server also forgets the script that undoes it. It would refuse an attach that it reads
     * after its caller has left, and nothing would be undone. */
    if (way == NOT_TAKEN) CHECK(server_command(reply, sizeof reply, "SCRIPT", "FLUSH", NULL));
    /* Nobody may get the answer before the way is taken. */
    if (way != NOT_TAKEN) kill(server_pid(), SIGSTOP);
    request = attach(client, "undone", token, fence, NULL);
    if (way == NOT_TAKEN) CHECK_INT(RL_OK, watched(request));
    if (way == CANCELLED || way == CANCELLED_AND_SHUT_DOWN) {
      CHECK_INT(RL_CANCELLED, rl_request_cancel(request));
    }
    if (way == SHUT_DOWN) {
      pthread_t thread;
      REQUIRE(pthread_create(&thread, NULL, shut_down, client) == 0);
      CHECK_INT(RL_E_CLOSED, ended(request));
      kill(server_pid(), SIGCONT);
      pthread_join(thread, NULL);
    } else {
      rl_request_free(request);
      kill(server_pid(), SIGCONT);
    }
    if (way >= CANCELLED_AND_SHUT_DOWN) {
      rl_client_shutdown(client);
      /* The shutdown has waited until the lease was detached again. */
      give_back(attached(other, "undone", token));
    } else {
      check_attachable(other, "undone", token);
    }
    rl_client_close(other);
    rl_client_close(client);
  }
}

static const struct test tests[] = {
    {"an_inspection_is_started", an_inspection_is_started},
    {"a_forced_release_is_started", a_forced_release_is_started},
    {"a_list_goes_on_by_requests", a_list_goes_on_by_requests},
    {"an_attach_is_started", an_attach_is_started},
    {"an_attach_for_nobody_is_undone", an_attach_for_nobody_is_undone},
};

int main(int argc, char** argv) { return run_tests(tests, TEST_COUNT(tests), argc, argv); }
