/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * The actor's commands about locks on several servers. `acquire`, `start` and `loop` take one of
 * them in place of a client, as `redlock`; what becomes of a lease is as ever.
 */
#include <string.h>

#include "actor.h"

enum { NODES_SIZE = 4096 };

static rl_client *redlocks[MAX_HANDLES];

rl_client *client_of(const struct call *call) {
  return find_argument(call, "redlock") == NULL ? clients[slot(call, "client")]
                                                : redlocks[slot(call, "redlock")];
}

static void set(rl_client_options *options, const char *name, size_t name_size, const char *value,
                size_t value_size, struct call *call) {
  rl_client_options_set(options, name, name_size, value, value_size, call->err);
}

/* @param options  name=value, more of them behind commas. */
static void do_open(struct call *call) {
  const size_t index = slot(call, "redlock");
  rl_client_options *options = rl_client_options_new();
  rl_status status = RL_OK;
  for (const char *word = text(call, "options"); *word != '\0' && status == RL_OK;) {
    const size_t size = strcspn(word, ",");
    const char *equals = memchr(word, '=', size);
    if (equals == NULL) fail("bad option");
    const size_t name_size = (size_t)(equals - word);
    set(options, word, name_size, equals + 1, size - name_size - 1, call);
    status = rl_error_status(call->err);
    word += size + (word[size] == ',');
  }
  if (status == RL_OK) {
    redlocks[index] =
        rl_redlock_open(text(call, "urls"), text_size(call, "urls"), options, call->err);
  }
  rl_client_options_free(options);
  say_result(call);
}

static void do_connect(struct call *call) {
  rl_client_connect(redlocks[slot(call, "redlock")], number(call, "wait", 0), call->err);
  say_result(call);
}

static void do_shutdown(struct call *call) {
  rl_client_shutdown(redlocks[slot(call, "redlock")]);
  say_status(call, RL_OK);
}

static void do_close(struct call *call) {
  const size_t index = slot(call, "redlock");
  rl_redlock_close(redlocks[index]);
  redlocks[index] = NULL;
  say_status(call, RL_OK);
}

/* A line for each node: its address, and "votes" or why it does not. */
static void do_nodes(struct call *call) {
  char buffer[NODES_SIZE] = "";
  size_t size = 0;
  rl_info *info = rl_client_info(client_of(call), call->err);
  for (int32_t i = 0; i < rl_info_count(info, RL_PART_NODE); i++) {
    const int64_t state = rl_info_number(info, RL_PART_NODE, i, RL_FIELD_STATE);
    size += rl_info_text(info, RL_PART_NODE, i, RL_FIELD_ADDRESS, buffer + size, NODES_SIZE - size);
    if (size + 16 > NODES_SIZE) fail("too many nodes");
    strcpy(buffer + size, ": votes");
    if (state != RL_NODE_UP && state != RL_NODE_POLLED) {
      size += 2;
      size +=
          rl_info_text(info, RL_PART_NODE, i, RL_FIELD_REASON, buffer + size, NODES_SIZE - size);
    } else {
      size += 7;
    }
    if (size + 16 > NODES_SIZE) fail("too many nodes");
    strcpy(buffer + size++, "\n");
  }
  rl_info_free(info);
  say_status(call, RL_OK);
  say(call, "value", buffer);
}

/* What no call has reported since the last time. */
static void do_log(struct call *call) {
  rl_client *client = client_of(call);
  char buffer[NODES_SIZE] = "";
  size_t size = 0;
  for (size_t n; (n = rl_client_log_next(client, buffer + size, sizeof buffer - size)) > 0;) {
    if (n + 1 >= sizeof buffer - size) fail("too many lines in the log");
    size += n;
    buffer[size++] = '\n';
    buffer[size] = '\0';
  }
  say_status(call, RL_OK);
  say(call, "lines", buffer);
}

const struct command redlock_commands[] = {
    {"redlock_open", do_open},
    {"redlock_connect", do_connect},
    {"redlock_shutdown", do_shutdown},
    {"redlock_close", do_close},
    {"redlock_nodes", do_nodes},
    {"log", do_log},
    {NULL, NULL},
};
