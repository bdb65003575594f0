/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Several processes stand by, and one of them leads until it ends, or loses the term: then it stops
 * its work and stands by again. `redlatch leader leader` shows which one leads.
 *
 *     leader redis://localhost:6379 [ID]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "redlatch/redlatch.h"

/* The next one leads at the latest so long after this one has crashed. */
enum { TTL_MS = 3000, STEP_MS = 100 };

/* A process that is paused in a step continues it: the fence lets others refuse that. */
static void work(int64_t fence) { printf("works, fence %lld\n", (long long)fence); }

static void lead(rl_lease* lease, rl_error* err) {
  const int64_t fence = rl_lease_fence(lease);
  printf("leads, fence %lld\n", (long long)fence);
  /* A loss ends the wait at once. */
  while (rl_lease_wait_lost(lease, STEP_MS) == RL_LEASE_HELD) work(fence);
  rl_lease_check(lease, err);
  printf("stopped: %s\n", rl_error_message(err));
}

int main(int argc, char** argv) {
  rl_error* err = rl_error_new();
  rl_acquire_options* options = rl_acquire_options_new();
  rl_client* client = NULL;
  rl_lease* lease;
  char id[300];
  if (argc != 2 && argc != 3) {
    fprintf(stderr, "usage: leader URL [ID]\n");
    return 64;
  }
  snprintf(id, sizeof id, "%s", argc == 3 ? argv[2] : "");
  if (argc == 2) snprintf(id, sizeof id, "process %ld", (long)getpid());
  setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
  rl_acquire_options_set_ttl_ms(options, TTL_MS);
  rl_acquire_options_set(options, "id", 2, id, strlen(id), NULL); /* A mistake fails the acquire. */
  client = rl_client_open(argv[1], strlen(argv[1]), NULL, err);
  /* -1: it stands by as long as it takes, also while the server is away. */
  while (client != NULL && (lease = rl_acquire(client, "leader", 6, -1, options, err)) != NULL) {
    lead(lease, err);
    rl_lease_free(lease);
  }
  fprintf(stderr, "leader: %s\n", rl_error_message(err));
  rl_client_close(client);
  rl_acquire_options_free(options);
  rl_error_free(err);
  return EXIT_FAILURE;
}
