/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * guard.c for a program that must start without the library: it is loaded at run time. In C90.
 *
 *     dlopen_guard redis://localhost:6379 counter.txt 100 [/path/to/libredlatch.so.0]
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redlatch/redlatch.h" /* For the types; nothing is linked. */

static struct {
  rl_error* (*error_new)(void);
  const char* (*error_message)(const rl_error*);
  void (*error_free)(rl_error*);
  rl_client* (*client_open)(const char*, size_t, const rl_client_options*, rl_error*);
  void (*client_close)(rl_client*);
  rl_lease* (*acquire)(rl_client*, const char*, size_t, int64_t, const rl_acquire_options*,
                       rl_error*);
  rl_status (*release)(rl_lease*, rl_error*);
  void (*lease_free)(rl_lease*);
} rl;

/* dlsym() returns a data pointer; POSIX says that it can be copied into a function pointer. */
static int load(void* library, const char* name, void* function) {
  void* symbol = dlsym(library, name);
  if (symbol == NULL) fprintf(stderr, "dlopen_guard: %s\n", dlerror());
  memcpy(function, &symbol, sizeof symbol);
  return symbol != NULL;
}

static int load_redlatch(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "dlopen_guard: %s\n", dlerror());
    return 0;
  }
  return load(library, "rl_error_new", &rl.error_new) &&
         load(library, "rl_error_message", &rl.error_message) &&
         load(library, "rl_error_free", &rl.error_free) &&
         load(library, "rl_client_open", &rl.client_open) &&
         load(library, "rl_client_close", &rl.client_close) &&
         load(library, "rl_acquire", &rl.acquire) && load(library, "rl_release", &rl.release) &&
         load(library, "rl_lease_free", &rl.lease_free);
}

static void add_one(const char* path) {
  long count = 0;
  FILE* file = fopen(path, "r");
  if (file != NULL) {
    if (fscanf(file, "%ld", &count) != 1) count = 0;
    fclose(file);
  }
  file = fopen(path, "w");
  if (file != NULL) {
    fprintf(file, "%ld\n", count + 1);
    fclose(file);
  }
}

static int add_one_guarded(rl_client* client, const char* path, rl_error* err) {
  rl_status status;
  rl_lease* lease = rl.acquire(client, "counter", 7, 30000, NULL, err);
  if (lease == NULL) return 0;
  add_one(path);
  status = rl.release(lease, err);
  rl.lease_free(lease);
  return status == RL_OK;
}

int main(int argc, char** argv) {
  rl_error* err;
  rl_client* client;
  int left = argc > 3 ? atoi(argv[3]) : 1;
  int is_good;
  if (argc < 3) {
    fprintf(stderr, "usage: dlopen_guard URL FILE [TIMES [LIBRARY]]\n");
    return 64;
  }
  if (!load_redlatch(argc > 4 ? argv[4] : "libredlatch.so.0")) return EXIT_FAILURE;
  err = rl.error_new();
  client = rl.client_open(argv[1], strlen(argv[1]), NULL, err);
  is_good = client != NULL;
  while (is_good && left-- > 0) is_good = add_one_guarded(client, argv[2], err);
  if (!is_good) fprintf(stderr, "dlopen_guard: %s\n", rl.error_message(err));
  rl.client_close(client);
  rl.error_free(err);
  return is_good ? EXIT_SUCCESS : EXIT_FAILURE;
}
