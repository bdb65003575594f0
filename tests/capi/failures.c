/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 */
#include "failures.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calls.h"
#include "harness.h"

atomic_long calls_left;
atomic_int is_failing_on;
atomic_int failed_count;
atomic_long threads_left = -1;
atomic_int refused_thread_count;

static int fails(void) {
  long left = atomic_load(&calls_left);
  while (left > 0) {
    if (left == 1 && atomic_load(&is_failing_on)) break;
    if (atomic_compare_exchange_weak(&calls_left, &left, left - 1)) break;
  }
  if (left != 1) return 0;
  atomic_fetch_add(&failed_count, 1);
  errno = ENOMEM;
  return 1;
}

extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
extern void* __libc_realloc(void* old, size_t size);
extern void* __libc_memalign(size_t alignment, size_t size);

/* Visible, so that the library and the C++ runtime below it (operator new) call these. */
#define VISIBLE __attribute__((visibility("default")))

VISIBLE void* malloc(size_t size) { return fails() ? NULL : __libc_malloc(size); }

VISIBLE void* calloc(size_t count, size_t size) {
  return fails() ? NULL : __libc_calloc(count, size);
}

VISIBLE void* realloc(void* old, size_t size) { return fails() ? NULL : __libc_realloc(old, size); }

VISIBLE void* aligned_alloc(size_t alignment, size_t size) {
  return fails() ? NULL : __libc_memalign(alignment, size);
}

VISIBLE int posix_memalign(void** result, size_t alignment, size_t size) {
  void* made = fails() ? NULL : __libc_memalign(alignment, size);
  if (made == NULL) return ENOMEM;
  *result = made;
  return 0;
}

static int is_thread_refused(void) {
  long left = atomic_load(&threads_left);
  while (left > 0) {
    if (atomic_compare_exchange_weak(&threads_left, &left, left - 1)) return 0;
  }
  if (left < 0) return 0;
  atomic_fetch_add(&refused_thread_count, 1);
  return 1;
}

VISIBLE int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                           void* (*body)(void*), void* argument) {
  typedef int create_function(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  create_function* real;
  if (is_thread_refused()) return EAGAIN; /* as with RLIMIT_NPROC */
  *(void**)&real = dlsym(RTLD_NEXT, "pthread_create");
  return real(thread, attributes, body, argument);
}

/* ---- scenarios ------------------------------------------------------------------------------- */

/* Time for a busy machine, and less than the 30 s of a lock that stays behind. */
enum { MOST_CALLS = 5000, LEFT_LIMIT_MS = 20000 };

static int64_t scenario_began_ms;

int may_be_over(void) { return now_ms() - scenario_began_ms >= SCENARIO_TTL_MS * 9 / 10; }

void check_honest(rl_status status, const char* step) {
  const int is_honest = status == RL_OK || status == RL_E_NO_MEMORY || status == RL_E_UNAVAILABLE ||
                        status == RL_E_OUTCOME_UNKNOWN || (status == RL_E_LOST && may_be_over());
  if (!CHECK(is_honest)) fprintf(stderr, "  %s: %s\n", step, rl_status_name(status));
}

int scenario_wait_ms(void) { return atomic_load(&is_failing_on) ? 100 : 2000; }

void check_acquired(rl_status status, int64_t began_ms, const char* step) {
  if (status == RL_TIMEOUT && now_ms() - began_ms >= scenario_wait_ms()) return;
  check_honest(status, step);
}

rl_lease* acquire_in_scenario(rl_client* client, const char* name,
                              const rl_acquire_options* options) {
  const int64_t began_ms = now_ms();
  rl_error* err = rl_error_new();
  rl_lease* lease = rl_acquire(client, name, strlen(name), scenario_wait_ms(), options, err);
  if (lease == NULL && err != NULL) check_acquired(rl_error_status(err), began_ms, "acquire");
  rl_error_free(err);
  return lease;
}

void use_with_threads(rl_client* client, long thread_count) {
  rl_request* waiting;
  if (client == NULL) return;
  atomic_store(&threads_left, thread_count);
  check_honest(rl_client_connect(client, 0, NULL), "connect");
  rl_lease_free(rl_acquire(client, TEXT("blocking"), 15, NULL, NULL));
  waiting = rl_acquire_start(client, TEXT("blocking"), 15, NULL);
  if (waiting != NULL) {
    const rl_status status = rl_request_wait(waiting, 3000);
    if (status != RL_TIMEOUT) check_honest(status, "request"); /* behind the acquire above */
  }
  rl_request_free(waiting);
  atomic_store(&threads_left, -1);
  atomic_store(&calls_left, 0);
  CHECK_INT(RL_OK, rl_client_connect(client, LEFT_LIMIT_MS, NULL));
  rl_client_close(client);
}

static void check_nothing_is_left(rl_client* looker) {
  static const char* const names[] = {"blocking", "request"};
  rl_error* err = rl_error_new();
  size_t i;
  for (i = 0; i < TEST_COUNT(names); ++i) {
    rl_lease* lease = rl_acquire(looker, names[i], strlen(names[i]), LEFT_LIMIT_MS, NULL, err);
    if (!CHECK(lease != NULL)) fprintf(stderr, "  %s\n", rl_error_message(err));
    /* An answer may take longer than command_timeout. */
    if (lease != NULL) {
      const rl_status status = rl_release(lease, err);
      CHECK(status == RL_OK || status == RL_E_OUTCOME_UNKNOWN);
    }
    rl_lease_free(lease);
  }
  rl_error_free(err);
}

void fail_at_each(void (*scenario)(void), long step, int fail_on, rl_client* looker,
                  void (*check)(void)) {
  long nth;
  int is_met = 1;
  alarm(HANG_S); /* Each scenario has the time of a test. */
  for (nth = 1; is_met && nth < MOST_CALLS && failure_count() < 10; nth += step) {
    const int before = failure_count();
    atomic_store(&failed_count, 0);
    atomic_store(&is_failing_on, fail_on);
    atomic_store(&calls_left, nth);
    scenario_began_ms = now_ms();
    scenario();
    atomic_store(&calls_left, 0);
    is_met = atomic_load(&failed_count) > 0;
    check_nothing_is_left(looker);
    if (check != NULL) check();
    if (failure_count() != before) fprintf(stderr, "  at call %ld\n", nth);
  }
  /* A scenario that needs no memory tests nothing. */
  CHECK(nth > 20);
  CHECK(!is_met);
  printf(" (%ld calls)", nth);
}
