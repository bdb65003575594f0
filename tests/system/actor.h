/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * What the files of the actor share: one call with its arguments and its reply.
 */
#ifndef REDLATCH_TESTS_SYSTEM_ACTOR_H
#define REDLATCH_TESTS_SYSTEM_ACTOR_H

#include <stdint.h>

#include "record.h"

enum { MAX_ARGUMENTS = 24, MAX_HANDLES = 256, REPLY_SIZE = 16384 };

struct argument {
  const char *name;
  const char *value;
  size_t size;
};

struct call {
  struct argument arguments[MAX_ARGUMENTS];
  size_t argument_count;
  rl_error *err;
  int64_t began_ns;
  char reply[REPLY_SIZE];
  size_t reply_size;
};

/* Slots that the driver names by number. One thread at a time may change one. */
extern rl_client *clients[MAX_HANDLES];
extern rl_lease *leases[MAX_HANDLES];
extern rl_request *requests[MAX_HANDLES];

/* Arguments of a call. A number that is missing is `otherwise`; a text that is missing is empty. */
const struct argument *find_argument(const struct call *call, const char *name);
int64_t number(const struct call *call, const char *name, int64_t otherwise);
const char *text(const struct call *call, const char *name);
size_t text_size(const struct call *call, const char *name);
/* A slot number; out of range ends the process: that is a bug of the test. */
size_t slot(const struct call *call, const char *name);
/* NULL for all defaults; else freed by rl_acquire_options_free(). */
rl_acquire_options *options_of(const struct call *call);

/* The client or the redlock that the call names. */
rl_client *client_of(const struct call *call);

/* Append to the reply. */
void say(struct call *call, const char *name, const char *value);
void say_bytes(struct call *call, const char *name, const char *value, size_t size);
void say_number(struct call *call, const char *name, int64_t value);
void say_status(struct call *call, rl_status status);
void say_result(struct call *call);

int64_t monotonic_ns(void);
void fail(const char *what);
void *allocate(size_t size);

/* @return 0 if there is no such command. */
typedef void command_function(struct call *call);
struct command {
  const char *name;
  command_function *function;
};
extern const struct command plain_commands[];
extern const struct command loop_commands[];
extern const struct command fork_commands[];
extern const struct command redlock_commands[];

#endif
