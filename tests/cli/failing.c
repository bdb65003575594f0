/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * For LD_PRELOAD into the command: a system that has no threads, or no room on a disk, left. Which,
 * the variable FAILING says: "thread", or "room", for files that are made in the folder of an
 * embedded server.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static int fails(const char *what) {
  const char *failing = getenv("FAILING");
  return failing != NULL && strcmp(failing, what) == 0;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *),
                   void *argument) {
  int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  if (fails("thread")) return EAGAIN;
  *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
  return real(thread, attributes, body, argument);
}

int openat(int folder, const char *path, int flags, ...) {
  int (*real)(int, const char *, int, ...);
  va_list rest;
  mode_t mode;
  va_start(rest, flags);
  mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  if ((flags & O_CREAT) != 0 && fails("room")) {
    errno = ENOSPC;
    return -1;
  }
  *(void **)&real = dlsym(RTLD_NEXT, "openat");
  return real(folder, path, flags, mode);
}
