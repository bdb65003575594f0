/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * The actor's commands that repeat calls, and those that disturb the process itself.
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "actor.h"

enum { LOOK_US = 2000 };

struct loop {
  rl_client *client;
  int looks; /* while it holds: the lease may be lost at any time */
  const char *name;
  size_t name_size;
  int64_t keys; /* of so many locks one at a time: a digit behind the name; 0 = the name itself */
  int64_t wait_ms;
  int64_t hold_us; /* the longest; each hold takes a random part of it */
  int64_t mixed;   /* short commands on other keys for each hold, on average */
  rl_acquire_options *options;
  rl_error *err;
  uint64_t random;
  int64_t count;
  int64_t short_count;
};

static uint64_t next_random(struct loop *loop) {
  loop->random ^= loop->random << 13;
  loop->random ^= loop->random >> 7;
  loop->random ^= loop->random << 17;
  return loop->random;
}

static void pass_time(int64_t us) {
  const int64_t end = monotonic_ns() + us * 1000;
  struct timespec pause = {0, 100000};
  while (monotonic_ns() < end) {
    if (end - monotonic_ns() > 150000) nanosleep(&pause, NULL);
  }
}

static void hold_for(struct loop *loop, const rl_lease *lease) {
  const int64_t end =
      monotonic_ns() + (int64_t)(next_random(loop) % (uint64_t)loop->hold_us) * 1000;
  while (loop->looks && end - monotonic_ns() > LOOK_US * 1000) {
    pass_time(LOOK_US);
    if (rl_lease_state(lease) != RL_LEASE_HELD) return;
  }
  const int64_t left = end - monotonic_ns();
  if (left > 0) pass_time(left / 1000);
}

static rl_lease *acquire(struct loop *loop) {
  char name[RL_MAX_NAME_BYTES + 1];
  size_t size = loop->name_size;
  memcpy(name, loop->name, size);
  if (loop->keys > 0) name[size++] = (char)('0' + next_random(loop) % (uint64_t)loop->keys);
  return rl_acquire(loop->client, name, size, loop->wait_ms, loop->options, loop->err);
}

static rl_status hold_once(struct loop *loop) {
  rl_lease *lease = acquire(loop);
  if (lease == NULL) return rl_error_status(loop->err);
  if (loop->hold_us > 0) hold_for(loop, lease);
  const int32_t state = rl_lease_state(lease);
  loop->count++;
  const rl_status status = rl_release(lease, loop->err);
  rl_lease_free(lease);
  return state == RL_LEASE_HELD ? status : RL_E_LOST;
}

/* A command or two that do not wait, on keys that nobody else uses, or a look at the common one. */
static rl_status short_commands(struct loop *loop) {
  char own[64];
  if (next_random(loop) % 4 == 0) {
    rl_info_free(rl_inspect(loop->client, loop->name, loop->name_size, loop->err));
    loop->short_count++;
    return rl_error_status(loop->err);
  }
  const int size = snprintf(own, sizeof own, "own:%d:%p", (int)getpid(), (void *)loop);
  rl_lease *lease = rl_acquire(loop->client, own, (size_t)size, 0, NULL, loop->err);
  if (lease == NULL) return rl_error_status(loop->err);
  const rl_status status = rl_release(lease, loop->err);
  rl_lease_free(lease);
  loop->short_count += 2;
  return status;
}

/* What servers that fail may answer; the next round may go well. */
static int is_passing(rl_status status) {
  return status == RL_TIMEOUT || status == RL_BUSY || status == RL_E_LOST ||
         status == RL_E_UNAVAILABLE || status == RL_E_OUTCOME_UNKNOWN ||
         status == RL_E_NOT_REPLICATED;
}

/* Acquire and release `count` times, or until `ms` have passed; stop at the first that fails, if
 * not told to be patient. */
static void do_loop(struct call *call) {
  struct loop loop = {0};
  loop.client = client_of(call);
  loop.looks = find_argument(call, "redlock") != NULL || number(call, "looks", 0) != 0;
  loop.name = text(call, "name");
  loop.name_size = text_size(call, "name");
  loop.keys = number(call, "keys", 0);
  if (loop.name_size > RL_MAX_NAME_BYTES || loop.keys > 10) fail("bad names");
  loop.wait_ms = number(call, "wait", 0);
  loop.hold_us = number(call, "hold_us", 0);
  loop.mixed = number(call, "mixed", 0);
  loop.random = (uint64_t)number(call, "seed", 1) * 0x9e3779b97f4a7c15U | 1;
  loop.options = options_of(call);
  loop.err = call->err;
  const int64_t count = number(call, "count", INT64_MAX);
  const int64_t end = call->began_ns + number(call, "ms", 3600000) * 1000000;
  const int is_patient = number(call, "patient", 0) != 0;
  rl_status status = RL_OK;
  while (status == RL_OK && loop.count < count && monotonic_ns() < end) {
    status = hold_once(&loop);
    if (is_patient && is_passing(status)) status = RL_OK;
    for (int64_t i = 0; i < loop.mixed && status == RL_OK; i++) {
      if (next_random(&loop) % 2) status = short_commands(&loop);
    }
  }
  say_status(call, status);
  say(call, "message", rl_error_message(call->err));
  say_number(call, "count", loop.count);
  say_number(call, "short_count", loop.short_count);
  rl_acquire_options_free(loop.options);
}

/* Open, use and close a client `count` times. */
static void do_reopen(struct call *call) {
  const char *url = text(call, "url");
  const char *name = text(call, "name");
  rl_status status = RL_OK;
  for (int64_t i = 0; i < number(call, "count", 1) && status == RL_OK; i++) {
    rl_client *client = rl_client_open(url, strlen(url), NULL, call->err);
    rl_lease *lease = rl_acquire(client, name, strlen(name), 0, NULL, call->err);
    status = rl_error_status(call->err);
    if (lease != NULL) status = rl_release(lease, call->err);
    rl_lease_free(lease);
    rl_client_close(client);
  }
  say_status(call, status);
  say(call, "message", rl_error_message(call->err));
}

/* ---- signals ---- */

static atomic_long signal_count;

static void on_signal(int number_of_signal) {
  (void)number_of_signal;
  signal_count++;
}

/* SIGPROF for each `us` of processor time and SIGALRM for each `us` of time, from now on; 0 ends
 * it. Without SA_RESTART: every system call that can be interrupted is. */
static void do_signals(struct call *call) {
  struct sigaction action = {0};
  action.sa_handler = on_signal;
  sigaction(SIGPROF, &action, NULL);
  sigaction(SIGALRM, &action, NULL);
  const suseconds_t us = (suseconds_t)number(call, "us", 0);
  const struct itimerval timer = {{0, us}, {0, us}};
  if (setitimer(ITIMER_PROF, &timer, NULL) != 0) fail("setitimer");
  if (setitimer(ITIMER_REAL, &timer, NULL) != 0) fail("setitimer");
  say_status(call, RL_OK);
  say_number(call, "count", signal_count);
}

const struct command loop_commands[] = {
    {"loop", do_loop},
    {"reopen", do_reopen},
    {"signals", do_signals},
    {NULL, NULL},
};
