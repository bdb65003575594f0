/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * malloc() and pthread_create() of a test program, which fail when they are asked to, and how a
 * scenario under such failures is judged.
 */
#ifndef REDLATCH_TESTS_FAILURES_H
#define REDLATCH_TESTS_FAILURES_H

#include <stdatomic.h>

#include "redlatch/redlatch.h"

/* Calls of malloc() and its like until the first failure; 0 = none fails. */
extern atomic_long calls_left;
extern atomic_int is_failing_on; /* Also after the first one. */
extern atomic_int failed_count;

/* Threads that can still be started; below 0: any number. */
extern atomic_long threads_left;
extern atomic_int refused_thread_count;

/* ---- scenarios ------------------------------------------------------------------------------- */

enum { SCENARIO_TTL_MS = 200 };

/* The leases of the scenario may have ended: on a busy machine. */
int may_be_over(void);
/* What a caller may be told when memory ran out. A wrong cause (RL_E_LOST, RL_BUSY, RL_E_INTERNAL,
   ..) would make a caller do the wrong thing. */
void check_honest(rl_status status, const char* step);
/* How long an acquire of a scenario waits. Short if every call fails from one on: memory never
   comes back, and the acquire waits to the end. */
int scenario_wait_ms(void);
/* check_honest(), and RL_TIMEOUT after the whole wait, which began at `began_ms`: a busy machine
   may need that long to connect. */
void check_acquired(rl_status status, int64_t began_ms, const char* step);
/* Acquire `name`, and check the status. */
rl_lease* acquire_in_scenario(rl_client* client, const char* name,
                              const rl_acquire_options* options);
/* Calls of `client` with so few threads, each of which ends with a status. Afterwards, with memory
   and threads, it is as good as any other, and is closed. */
void use_with_threads(rl_client* client, long thread_count);
/* Run `scenario` while malloc() fails the Nth call, for N = 1, 1 + step, .. until a run does not
   meet it; with `fail_on` also all calls behind it. Nothing may stay locked for longer than its
   lease. `check` (or NULL) follows each run. */
void fail_at_each(void (*scenario)(void), long step, int fail_on, rl_client* looker,
                  void (*check)(void));

#endif
