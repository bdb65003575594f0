/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Several processes add to the number in a file; a lock keeps them from losing additions.
 *
 *     guard redis://localhost:6379 counter.txt 100
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redlatch/redlatch.h"

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

/* Wait for the lock for at most 30 s, then add under it. */
static rl_status add_one_guarded(rl_client* client, const char* path, rl_error* err) {
  rl_status status;
  rl_lease* lease = rl_acquire(client, "counter", 7, 30000, NULL, err);
  if (lease == NULL) return rl_error_status(err);
  add_one(path);
  /* RL_E_LOST here would mean that somebody else may have been inside too. */
  status = rl_release(lease, err);
  rl_lease_free(lease);
  return status;
}

int main(int argc, char** argv) {
  rl_error* err = rl_error_new();
  rl_client* client = NULL;
  rl_status status = RL_E_INVALID;
  int left = argc > 3 ? atoi(argv[3]) : 1;
  if (argc < 3) {
    fprintf(stderr, "usage: guard URL FILE [TIMES]\n");
    return 64;
  }
  client = rl_client_open(argv[1], strlen(argv[1]), NULL, err);
  if (client != NULL) status = RL_OK;
  while (status == RL_OK && left-- > 0) status = add_one_guarded(client, argv[2], err);
  if (status != RL_OK) fprintf(stderr, "guard: %s\n", rl_error_message(err));
  rl_client_close(client);
  rl_error_free(err);
  return status == RL_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
