/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * A cache that many processes read at the same time, and that one of them refreshes when it is too
 * old, while the others wait for the new value.
 *
 *     cache redis://localhost:6379 cache.txt
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "redlatch/redlatch.h"

enum { MAX_AGE_S = 60, WAIT_MS = 30000 };

static int is_fresh(const char* path) {
  struct stat found;
  return stat(path, &found) == 0 && found.st_mtime + MAX_AGE_S > time(NULL);
}

/* Something slow, such as a query. */
static void refresh(const char* path) {
  FILE* file;
  sleep(1);
  file = fopen(path, "w");
  if (file == NULL) return;
  fprintf(file, "value of process %ld\n", (long)getpid());
  fclose(file);
  puts("refreshed");
}

static void show(const char* path) {
  char value[80] = "none\n";
  FILE* file = fopen(path, "r");
  if (file != NULL && fgets(value, sizeof value, file) != NULL) fputs(value, stdout);
  if (file != NULL) fclose(file);
}

static rl_status read_or_refresh(rl_client* client, const char* path, rl_error* err) {
  rl_status status;
  rl_lease* lease = rl_rw_acquire_read(client, "cache", 5, WAIT_MS, NULL, err);
  if (lease != NULL && !is_fresh(path)) {
    rl_release(lease, NULL);
    rl_lease_free(lease);
    lease = rl_rw_acquire_write(client, "cache", 5, WAIT_MS, NULL, err);
    /* Another may have refreshed it while this one waited. */
    if (lease != NULL && !is_fresh(path)) refresh(path);
  }
  if (lease == NULL) return rl_error_status(err);
  show(path);
  status = rl_release(lease, err);
  rl_lease_free(lease);
  return status;
}

int main(int argc, char** argv) {
  rl_error* err = rl_error_new();
  rl_client* client = NULL;
  rl_status status = RL_E_INVALID;
  if (argc != 3) {
    fprintf(stderr, "usage: cache URL FILE\n");
    return 64;
  }
  client = rl_client_open(argv[1], strlen(argv[1]), NULL, err);
  if (client != NULL) status = read_or_refresh(client, argv[2], err);
  if (status != RL_OK) fprintf(stderr, "cache: %s\n", rl_error_message(err));
  rl_client_close(client);
  rl_error_free(err);
  return status == RL_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
