/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * The actor's commands that are one call of the library each.
 */
#include <stdlib.h>
#include <string.h>

#include "actor.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { IS_SANITIZED = 1 };
#else
enum { IS_SANITIZED = 0 };
#endif

enum { TOKEN_SIZE = 64, TEXT_SIZE = 512 };

/* ---- clients ---- */

static void do_open(struct call *call) {
  const size_t index = slot(call, "client");
  clients[index] = rl_client_open(text(call, "url"), text_size(call, "url"), NULL, call->err);
  say_result(call);
  say_number(call, "is_sanitized", IS_SANITIZED);
}

static void do_connect(struct call *call) {
  rl_client_connect(clients[slot(call, "client")], number(call, "wait", 0), call->err);
  say_result(call);
}

static void do_shutdown(struct call *call) {
  rl_client_shutdown(clients[slot(call, "client")]);
  say_status(call, RL_OK);
}

static void do_close(struct call *call) {
  const size_t index = slot(call, "client");
  rl_client_close(clients[index]);
  clients[index] = NULL;
  say_status(call, RL_OK);
}

/* ---- credentials ---- */

enum { WANTED = 1 };

static rl_queue *questions[MAX_HANDLES]; /* of the client, or the redlock, with that number */

static size_t question_slot(const struct call *call) {
  return slot(call, find_argument(call, "redlock") == NULL ? "client" : "redlock");
}

static void do_credentials_watch(struct call *call) {
  rl_queue **queue = &questions[question_slot(call)];
  *queue = rl_queue_new(call->err);
  say_status(call, rl_client_credentials_watch(client_of(call), *queue, WANTED));
}

/* RL_TIMEOUT: no credentials were wanted meanwhile. */
static void do_credentials_wanted(struct call *call) {
  const int64_t tag = rl_queue_next(questions[question_slot(call)], number(call, "wait", 0));
  say_status(call, tag == WANTED ? RL_OK : RL_TIMEOUT);
}

static void do_credentials_set(struct call *call) {
  rl_client_credentials_set(client_of(call), text(call, "user"), text_size(call, "user"),
                            text(call, "password"), text_size(call, "password"),
                            number(call, "valid_ms", -1), call->err);
  say_result(call);
}

static void do_credentials_fail(struct call *call) {
  rl_client_credentials_fail(client_of(call), text(call, "reason"), text_size(call, "reason"),
                             call->err);
  say_result(call);
}

/* ---- acquire ---- */

/* Options that have no setter of their own. */
static const char *const named_options[] = {"min_replicas", "sync_timeout"};

rl_acquire_options *options_of(const struct call *call) {
  rl_acquire_options *options = rl_acquire_options_new();
  int32_t bad = 0;
  for (size_t i = 0; i < sizeof named_options / sizeof *named_options; i++) {
    const char *name = named_options[i];
    if (find_argument(call, name) == NULL) continue;
    bad |= rl_acquire_options_set(options, name, strlen(name), text(call, name),
                                  text_size(call, name), NULL);
  }
  if (find_argument(call, "ttl_ms")) {
    bad |= rl_acquire_options_set_ttl_ms(options, number(call, "ttl_ms", 0));
  }
  if (find_argument(call, "foreign")) {
    bad |= rl_acquire_options_set_yield_every(options, (int32_t)number(call, "foreign", 0));
  }
  if (find_argument(call, "burst")) {
    bad |= rl_acquire_options_set_max_local_handoffs(options, (int32_t)number(call, "burst", 0));
  }
  if (find_argument(call, "renew")) {
    bad |= rl_acquire_options_set_renew(options, (int32_t)number(call, "renew", 0));
  }
  if (find_argument(call, "confirm")) {
    bad |= rl_acquire_options_set_confirm(options, (int32_t)number(call, "confirm", 0));
  }
  if (find_argument(call, "format")) {
    bad |= rl_acquire_options_set_format(options, (int32_t)number(call, "format", 0));
  }
  if (find_argument(call, "label")) {
    bad |= rl_acquire_options_set_label(options, text(call, "label"), text_size(call, "label"));
  }
  if (bad != RL_OK) fail("bad option");
  return options;
}

static void do_acquire(struct call *call) {
  const size_t index = slot(call, "lease");
  rl_acquire_options *options = options_of(call);
  rl_lease *(*const acquire)(rl_client *, const char *, size_t, int64_t, const rl_acquire_options *,
                             rl_error *) =
      find_argument(call, "read") ? rl_rw_acquire_read : rl_acquire;
  leases[index] = acquire(client_of(call), text(call, "name"), text_size(call, "name"),
                          number(call, "wait", 0), options, call->err);
  rl_acquire_options_free(options);
  say_result(call);
  say_number(call, "fence", rl_lease_fence(leases[index]));
}

static void do_start(struct call *call) {
  rl_acquire_options *options = options_of(call);
  requests[slot(call, "request")] =
      rl_acquire_start(client_of(call), text(call, "name"), text_size(call, "name"),
                       number(call, "wait", 0), options);
  rl_acquire_options_free(options);
  say_status(call, RL_OK);
}

static void do_attach(struct call *call) {
  leases[slot(call, "lease")] =
      rl_lease_attach(clients[slot(call, "client")], text(call, "name"), text_size(call, "name"),
                      text(call, "token"), text_size(call, "token"), 0, NULL, call->err);
  say_result(call);
}

/* ---- requests ---- */

static void do_wait(struct call *call) {
  rl_request *request = requests[slot(call, "request")];
  say_status(call, rl_request_wait(request, number(call, "wait", 0)));
  say(call, "message", rl_request_message(request));
}

static void do_cancel(struct call *call) {
  say_status(call, rl_request_cancel(requests[slot(call, "request")]));
}

static void do_free_request(struct call *call) {
  const size_t index = slot(call, "request");
  rl_request_free(requests[index]);
  requests[index] = NULL;
  say_status(call, RL_OK);
}

static void do_release_start(struct call *call) {
  requests[slot(call, "request")] = rl_release_start(leases[slot(call, "lease")]);
  say_status(call, RL_OK);
}

/* ---- leases ---- */

static void do_release(struct call *call) {
  rl_release(leases[slot(call, "lease")], call->err);
  say_result(call);
}

static void do_extend(struct call *call) {
  rl_extend(leases[slot(call, "lease")], number(call, "ttl_ms", 30000), call->err);
  say_result(call);
}

static void do_free(struct call *call) {
  const size_t index = slot(call, "lease");
  rl_lease_free(leases[index]);
  leases[index] = NULL;
  say_status(call, RL_OK);
}

static void do_detach(struct call *call) {
  rl_lease_detach(leases[slot(call, "lease")], NULL, 0, call->err);
  say_result(call);
}

/* The state is asked for first: it must be true of the first call after a pause. */
static void do_look(struct call *call) {
  const rl_lease *lease = leases[slot(call, "lease")];
  char token[TOKEN_SIZE];
  const int32_t state = rl_lease_state(lease);
  say_number(call, "state", state);
  say_number(call, "remaining", rl_lease_remaining_ms(lease));
  say_number(call, "fence", rl_lease_fence(lease));
  rl_lease_token(lease, token, sizeof token);
  say(call, "token", token);
  rl_lease_check(lease, call->err);
  say_result(call);
}

static void do_wait_lost(struct call *call) {
  const int32_t state = rl_lease_wait_lost(leases[slot(call, "lease")], number(call, "wait", 0));
  say_status(call, state < 0 ? state : RL_OK);
  say_number(call, "state", state);
}

/* ---- looking and operating ---- */

static void do_inspect(struct call *call) {
  char buffer[TEXT_SIZE];
  rl_info *info = rl_inspect(clients[slot(call, "client")], text(call, "name"),
                             text_size(call, "name"), call->err);
  say_result(call);
  say_number(call, "state", rl_info_number(info, RL_PART_LOCK, 0, RL_FIELD_STATE));
  say_number(call, "waiting", rl_info_number(info, RL_PART_LOCK, 0, RL_FIELD_WAITING));
  say_number(call, "fence", rl_info_number(info, RL_PART_LOCK, 0, RL_FIELD_FENCE));
  rl_info_text(info, RL_PART_LOCK, 0, RL_FIELD_TYPE, buffer, sizeof buffer);
  say(call, "type", buffer);
  rl_info_text(info, RL_PART_HOLDER, 0, RL_FIELD_TOKEN, buffer, sizeof buffer);
  say(call, "holder", buffer);
  rl_info_text(info, RL_PART_HOLDER, 0, RL_FIELD_LABEL, buffer, sizeof buffer);
  say(call, "label", buffer);
  rl_info_free(info);
}

static void do_force(struct call *call) {
  rl_force_release_any(clients[slot(call, "client")], text(call, "name"), text_size(call, "name"),
                       call->err);
  say_result(call);
}

/* All locks, one call after the other: RL_END, or why not. */
static void do_list(struct call *call) {
  rl_list *list = rl_list_open(clients[slot(call, "client")], "", 0, call->err);
  int64_t count = 0;
  while (list != NULL && rl_list_next(list, call->err) == RL_OK) count++;
  rl_list_free(list);
  say_result(call);
  say_number(call, "count", count);
}

/* A step of a list that has no other: no thread waits for it but the library's own. */
static void do_list_start(struct call *call) {
  rl_list *list = rl_list_open(clients[slot(call, "client")], "", 0, call->err);
  requests[slot(call, "request")] = rl_list_next_start(list);
  rl_list_free(list);
  say_status(call, RL_OK);
}

static void do_poll(struct call *call) {
  say_status(call, rl_request_status(requests[slot(call, "request")]));
}

/* The oldest line of the log. */
static void do_log_line(struct call *call) {
  char line[TEXT_SIZE];
  const size_t size = rl_client_log_next(clients[slot(call, "client")], line, sizeof line);
  say_status(call, size == 0 ? RL_END : RL_OK);
  say(call, "line", line);
}

const struct command plain_commands[] = {
    {"open", do_open},
    {"connect", do_connect},
    {"shutdown", do_shutdown},
    {"close", do_close},
    {"credentials_watch", do_credentials_watch},
    {"credentials_wanted", do_credentials_wanted},
    {"credentials_set", do_credentials_set},
    {"credentials_fail", do_credentials_fail},
    {"acquire", do_acquire},
    {"start", do_start},
    {"attach", do_attach},
    {"wait", do_wait},
    {"cancel", do_cancel},
    {"free_request", do_free_request},
    {"release_start", do_release_start},
    {"release", do_release},
    {"extend", do_extend},
    {"free", do_free},
    {"detach", do_detach},
    {"look", do_look},
    {"wait_lost", do_wait_lost},
    {"inspect", do_inspect},
    {"force", do_force},
    {"list", do_list},
    {"list_start", do_list_start},
    {"poll", do_poll},
    {"log_line", do_log_line},
    {NULL, NULL},
};
