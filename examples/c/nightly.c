/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * A report that every host starts each night, and that one of them makes: once for each day. If it
 * fails there, another host may try.
 *
 *     nightly redis://localhost:6379 "$(date +%F)"
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redlatch/redlatch.h"

enum { TRIES = 3 };
static const int64_t kTwoDaysMs = 2 * 24 * 3600 * 1000;

static rl_status run_once(rl_lease* lease, const char* day, rl_error* err) {
  const rl_status status = rl_once_begin(lease, day, strlen(day), kTwoDaysMs, TRIES, err);
  if (status == RL_SKIPPED) printf("skipped: the report of %s is done\n", day);
  if (status == RL_SKIPPED) return rl_release(lease, err);
  if (status != RL_OK) return status;
  /* The work. After a failure: rl_release(), which leaves the next host a try. */
  printf("done: the report of %s\n", day);
  /* RL_E_LOST here would mean that another host may have begun it, too. */
  return rl_once_done(lease, day, strlen(day), err);
}

int main(int argc, char** argv) {
  rl_error* err = rl_error_new();
  rl_client* client = NULL;
  rl_lease* lease = NULL;
  rl_status status = RL_E_INVALID;
  if (argc != 3) {
    fprintf(stderr, "usage: nightly URL DAY\n");
    return 64;
  }
  client = rl_client_open(argv[1], strlen(argv[1]), NULL, err);
  /* A host that starts during a run waits for its end. */
  if (client != NULL) lease = rl_acquire(client, "nightly", 7, -1, NULL, err);
  if (lease != NULL) status = run_once(lease, argv[2], err);
  if (status != RL_OK) fprintf(stderr, "nightly: %s\n", rl_error_message(err));
  rl_lease_free(lease);
  rl_client_close(client);
  rl_error_free(err);
  return status == RL_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
