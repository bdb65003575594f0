/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 */
#include "failures.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

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
