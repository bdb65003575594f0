/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * The lines of the conformance protocol, in and out: words, percent-encoding, nothing about locks.
 */
#ifndef REDLATCH_CONFORMANCE_CALL_H
#define REDLATCH_CONFORMANCE_CALL_H

#include <stddef.h>
#include <stdint.h>

enum { LINE_SIZE = 16384, ARGUMENT_COUNT = 24 };

/* One line `TARGET OP key=value .. [&N]`, taken apart, and the values that answer it. */
struct call {
  char line[LINE_SIZE];
  const char *target, *op; /* Never NULL once parsed. */
  char *keys[ARGUMENT_COUNT], *values[ARGUMENT_COUNT];
  size_t lengths[ARGUMENT_COUNT];
  int argument_count;
  int job; /* N, or 0. */
  char answer[LINE_SIZE];
};

int is(const char* text, const char* other);
/* Take call->line apart. A defect `cut_at_nul` cuts decoded values there. */
void parse_call(struct call* call, const char* defect);
/* The argument `key`, which may hold NUL bytes, or "". */
const char* text_of(const struct call* call, const char* key, size_t* length);
int64_t number_of(const struct call* call, const char* key);
/* Append to the answer: in the form of printf; or any bytes, percent-encoded. */
void add(struct call* call, const char* format, ...);
void add_text(struct call* call, const char* text, size_t length);

#endif
