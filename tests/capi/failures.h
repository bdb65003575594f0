/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * malloc() and pthread_create() of a test program, which fail when they are asked to.
 */
#ifndef REDLATCH_TESTS_FAILURES_H
#define REDLATCH_TESTS_FAILURES_H

#include <stdatomic.h>

/* Calls of malloc() and its like until the first failure; 0 = none fails. */
extern atomic_long calls_left;
extern atomic_int is_failing_on; /* Also after the first one. */
extern atomic_int failed_count;

/* Threads that can still be started; below 0: any number. */
extern atomic_long threads_left;
extern atomic_int refused_thread_count;

#endif
