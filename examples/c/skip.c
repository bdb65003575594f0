/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * A job that several hosts start at the same time, and that one of them does: a report, here the
 * number of lines of the input. Whoever finds the lock taken skips it.
 *
 *     skip redis://localhost:6379 < access.log
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redlatch/redlatch.h"

static void report(void) {
  long lines = 0;
  int c;
  while ((c = getchar()) != EOF) lines += c == '\n';
  printf("done: %ld lines\n", lines);
}

int main(int argc, char** argv) {
  rl_error* err = rl_error_new();
  rl_client* client = NULL;
  rl_lease* lease = NULL;
  rl_status status;
  if (argc != 2) {
    fprintf(stderr, "usage: skip URL < FILE\n");
    return 64;
  }
  client = rl_client_open(argv[1], strlen(argv[1]), NULL, err);
  /* A wait of 0: one try. */
  if (client != NULL) lease = rl_acquire(client, "report", 6, 0, NULL, err);
  status = rl_error_status(err);
  if (status == RL_BUSY) {
    puts("skipped: another host does it");
  } else if (lease != NULL) {
    puts("begun");
    fflush(stdout);
    report();
    /* RL_E_LOST here would mean that somebody else may have done it too. */
    status = rl_release(lease, err);
  }
  if (status < 0) fprintf(stderr, "skip: %s\n", rl_error_message(err));
  rl_lease_free(lease);
  rl_client_close(client);
  rl_error_free(err);
  return status < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
