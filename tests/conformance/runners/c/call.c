/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 */
#include "call.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int is(const char* text, const char* other) { return strcmp(text, other) == 0; }

/* Percent-decode in place. @return the length; the text may hold NUL. */
static size_t decode(char* text) {
  char *to = text, *from = text;
  unsigned byte = 0;
  while (*from != '\0') {
    const int is_escape = *from == '%' && sscanf(from + 1, "%2x", &byte) == 1;
    *to++ = is_escape ? (char)byte : *from;
    from += is_escape ? 3 : 1;
  }
  *to = '\0';
  return (size_t)(to - text);
}

static void parse_argument(struct call* call, char* word, const char* defect) {
  const int i = call->argument_count;
  char* value = strchr(word, '=');
  if (value == NULL || i == ARGUMENT_COUNT) return;
  *value++ = '\0';
  call->keys[i] = word;
  call->values[i] = value;
  call->lengths[i] = decode(value);
  if (is(defect, "cut_at_nul")) call->lengths[i] = strlen(value);
  ++call->argument_count;
}

void parse_call(struct call* call, const char* defect) {
  char* rest = NULL;
  char* word;
  call->target = strtok_r(call->line, " \n", &rest);
  call->op = strtok_r(NULL, " \n", &rest);
  if (call->target == NULL) call->target = "-";
  if (call->op == NULL) call->op = "";
  while ((word = strtok_r(NULL, " \n", &rest)) != NULL) {
    if (word[0] == '&') {
      call->job = atoi(word + 1);
    } else {
      parse_argument(call, word, defect);
    }
  }
}

const char* text_of(const struct call* call, const char* key, size_t* length) {
  int i = 0;
  while (i < call->argument_count && !is(call->keys[i], key)) ++i;
  *length = i < call->argument_count ? call->lengths[i] : 0;
  return i < call->argument_count ? call->values[i] : "";
}

int64_t number_of(const struct call* call, const char* key) {
  size_t length;
  return strtoll(text_of(call, key, &length), NULL, 10);
}

void add(struct call* call, const char* format, ...) {
  const size_t used = strlen(call->answer);
  va_list values;
  va_start(values, format);
  vsnprintf(call->answer + used, LINE_SIZE - used, format, values);
  va_end(values);
}

void add_text(struct call* call, const char* text, size_t length) {
  size_t i;
  for (i = 0; i < length; ++i) {
    const unsigned char byte = (unsigned char)text[i];
    add(call, byte > ' ' && byte < 127 && byte != '%' ? "%c" : "%%%02x", byte);
  }
}
