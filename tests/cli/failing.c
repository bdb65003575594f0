/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * For LD_PRELOAD into the command. The variable FAILING says what fails: "thread" and "room" (for
 * files in the folder of an embedded server): the system has none left. "watch": the library has no
 * memory for a watch for recalls. "stop": nothing, but the process stops itself by SIGSTOP before a
 * recall, and before the removal of a holder.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "redlatch/redlatch.h"

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

rl_status rl_lease_watch_recall(rl_lease *lease, rl_queue *queue, int64_t tag) {
  rl_status (*real)(rl_lease *, rl_queue *, int64_t);
  if (fails("watch")) return RL_E_NO_MEMORY;
  *(void **)&real = dlsym(RTLD_NEXT, "rl_lease_watch_recall");
  return real(lease, queue, tag);
}

rl_status rl_recall(rl_client *client, const char *name, size_t name_len, const char *reason,
                    size_t reason_len, int64_t *heard, rl_error *err) {
  rl_status (*real)(rl_client *, const char *, size_t, const char *, size_t, int64_t *, rl_error *);
  if (fails("stop")) raise(SIGSTOP);
  *(void **)&real = dlsym(RTLD_NEXT, "rl_recall");
  return real(client, name, name_len, reason, reason_len, heard, err);
}

rl_status rl_force_release(rl_client *client, const char *name, size_t name_len, const char *token,
                           size_t token_len, rl_error *err) {
  rl_status (*real)(rl_client *, const char *, size_t, const char *, size_t, rl_error *);
  if (fails("stop")) raise(SIGSTOP);
  *(void **)&real = dlsym(RTLD_NEXT, "rl_force_release");
  return real(client, name, name_len, token, token_len, err);
}
