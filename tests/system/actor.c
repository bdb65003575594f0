/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * A program that calls redlatch as it is told, so that tests can stop, kill and fork it.
 *
 * A line on standard input is `THREAD COMMAND name=value ...`, a line on standard output
 * `THREAD name=value ...`; bytes that are not plain are written %XX. Each thread is started when it
 * is first named, does its lines in order, and answers each with one line. Times are nanoseconds of
 * CLOCK_MONOTONIC, which all processes of a host share. The end of the input ends the process
 * without any farewell to the server, as a crash does.
 */
#include "actor.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_WORKERS = 64 };

struct line {
  struct line *next;
  char text[];
};

struct worker {
  pthread_mutex_t mutex; /* guards the list */
  pthread_cond_t changed;
  struct line *first;
  struct line **end;
  int is_started;
};

static struct worker workers[MAX_WORKERS];
static pthread_mutex_t output_mutex = PTHREAD_MUTEX_INITIALIZER;

rl_client *clients[MAX_HANDLES];
rl_lease *leases[MAX_HANDLES];
rl_request *requests[MAX_HANDLES];

void fail(const char *what) {
  fprintf(stderr, "actor: %s\n", what);
  _exit(99);
}

void *allocate(size_t size) {
  void *memory = calloc(1, size);
  if (memory == NULL) fail("out of memory");
  return memory;
}

int64_t monotonic_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- arguments ---- */

const struct argument *find_argument(const struct call *call, const char *name) {
  for (size_t i = 0; i < call->argument_count; i++) {
    if (strcmp(call->arguments[i].name, name) == 0) return &call->arguments[i];
  }
  return NULL;
}

int64_t number(const struct call *call, const char *name, int64_t otherwise) {
  const struct argument *found = find_argument(call, name);
  return found == NULL ? otherwise : strtoll(found->value, NULL, 10);
}

const char *text(const struct call *call, const char *name) {
  const struct argument *found = find_argument(call, name);
  return found == NULL ? "" : found->value;
}

size_t text_size(const struct call *call, const char *name) {
  const struct argument *found = find_argument(call, name);
  return found == NULL ? 0 : found->size;
}

size_t slot(const struct call *call, const char *name) {
  const int64_t index = number(call, name, 0);
  if (index < 0 || index >= MAX_HANDLES) fail("no such slot");
  return (size_t)index;
}

static int hex_digit(char c) {
  const char *digits = "0123456789abcdef";
  const char *found = c == '\0' ? NULL : strchr(digits, tolower((unsigned char)c));
  return found == NULL ? 0 : (int)(found - digits);
}

/* In place. @return the size; a NUL follows. */
static size_t percent_decode(char *in_out) {
  char *out = in_out;
  for (const char *in = in_out; *in != '\0'; in++) {
    if (in[0] == '%' && in[1] != '\0' && in[2] != '\0') {
      *out++ = (char)(hex_digit(in[1]) << 4 | hex_digit(in[2]));
      in += 2;
    } else {
      *out++ = *in;
    }
  }
  *out = '\0';
  return (size_t)(out - in_out);
}

static void parse_arguments(struct call *call, char *rest) {
  char *state = NULL;
  for (char *word = strtok_r(rest, " ", &state); word; word = strtok_r(NULL, " ", &state)) {
    char *equals = strchr(word, '=');
    if (equals == NULL || call->argument_count == MAX_ARGUMENTS) fail("bad argument");
    *equals = '\0';
    struct argument *argument = &call->arguments[call->argument_count++];
    argument->name = word;
    argument->value = equals + 1;
    argument->size = percent_decode(equals + 1);
  }
}

/* ---- replies ---- */

void say_bytes(struct call *call, const char *name, const char *value, size_t size) {
  if (call->reply_size + strlen(name) + 3 * size + 3 > REPLY_SIZE) fail("reply too long");
  char *out = call->reply + call->reply_size;
  out += sprintf(out, " %s=", name);
  for (size_t i = 0; i < size; i++) {
    const unsigned char byte = (unsigned char)value[i];
    if (byte <= ' ' || byte >= 0x7f || byte == '%') {
      out += sprintf(out, "%%%02x", byte);
    } else {
      *out++ = (char)byte;
    }
  }
  *out = '\0';
  call->reply_size = (size_t)(out - call->reply);
}

void say(struct call *call, const char *name, const char *value) {
  say_bytes(call, name, value, strlen(value));
}

void say_number(struct call *call, const char *name, int64_t value) {
  char digits[32];
  snprintf(digits, sizeof digits, "%lld", (long long)value);
  say(call, name, digits);
}

void say_status(struct call *call, rl_status status) {
  say(call, "status", rl_status_name(status));
}

/* The status and message of a call that was given `call->err`. */
void say_result(struct call *call) {
  say_status(call, rl_error_status(call->err));
  say(call, "message", rl_error_message(call->err));
}

static void answer(int thread, const struct call *call) {
  char head[32];
  const int head_size = snprintf(head, sizeof head, "%d", thread);
  pthread_mutex_lock(&output_mutex);
  printf("%.*s%s\n", head_size, head, call->reply);
  fflush(stdout);
  pthread_mutex_unlock(&output_mutex);
}

/* ---- threads ---- */

static command_function *find_in(const struct command *table, const char *name) {
  for (; table->name != NULL; table++) {
    if (strcmp(table->name, name) == 0) return table->function;
  }
  return NULL;
}

static void do_line(int thread, char *line_text) {
  struct call *call = allocate(sizeof *call);
  char *rest = strchr(line_text, ' ');
  if (rest != NULL) *rest++ = '\0';
  if (rest != NULL) parse_arguments(call, rest);
  command_function *function = find_in(plain_commands, line_text);
  if (function == NULL) function = find_in(loop_commands, line_text);
  if (function == NULL) function = find_in(fork_commands, line_text);
  if (function == NULL) function = find_in(redlock_commands, line_text);
  if (function == NULL) fail(line_text);
  call->err = rl_error_new();
  call->began_ns = monotonic_ns();
  function(call);
  say_number(call, "from", call->began_ns);
  say_number(call, "to", monotonic_ns());
  rl_error_free(call->err);
  answer(thread, call);
  free(call);
}

static struct line *next_line(struct worker *self) {
  pthread_mutex_lock(&self->mutex);
  while (self->first == NULL) pthread_cond_wait(&self->changed, &self->mutex);
  struct line *line = self->first;
  self->first = line->next;
  if (self->first == NULL) self->end = &self->first;
  pthread_mutex_unlock(&self->mutex);
  return line;
}

static void *work(void *argument) {
  struct worker *self = argument;
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, NULL);
  for (struct line *line = next_line(self); line != NULL; line = next_line(self)) {
    do_line((int)(self - workers), line->text);
    free(line);
  }
  return NULL;
}

static void start(struct worker *worker) {
  pthread_t thread;
  pthread_mutex_init(&worker->mutex, NULL);
  pthread_cond_init(&worker->changed, NULL);
  worker->end = &worker->first;
  worker->is_started = 1;
  if (pthread_create(&thread, NULL, work, worker) != 0) fail("no thread");
  pthread_detach(thread);
}

static void hand_over(const char *input) {
  char *rest = NULL;
  const long index = strtol(input, &rest, 10);
  if (index < 0 || index >= MAX_WORKERS || *rest != ' ') fail("bad thread");
  struct worker *worker = &workers[index];
  /* What a thread did before its answer is known to the next: a test goes by the answers. */
  pthread_mutex_lock(&output_mutex);
  pthread_mutex_unlock(&output_mutex);
  if (!worker->is_started) start(worker);
  const size_t size = strlen(rest + 1) + 1;
  struct line *line = allocate(sizeof *line + size);
  memcpy(line->text, rest + 1, size);
  pthread_mutex_lock(&worker->mutex);
  *worker->end = line;
  worker->end = &line->next;
  pthread_cond_signal(&worker->changed);
  pthread_mutex_unlock(&worker->mutex);
}

int main(void) {
  /* Signals of timers go to the workers: this thread only reads. */
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, NULL);
  char *input = NULL;
  size_t capacity = 0;
  ssize_t size = 0;
  while ((size = getline(&input, &capacity, stdin)) > 0) {
    if (input[size - 1] != '\n') break;
    input[size - 1] = '\0';
    hand_over(input);
  }
  _exit(0);
}
