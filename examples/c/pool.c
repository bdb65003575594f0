/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * A pool of three: of all processes that are started, on many hosts, three work at a time, and the
 * others wait for their turn. The work is a report, here the number of lines of the input.
 *
 *     pool redis://localhost:6379 < access.log
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
  rl_acquire_options* options = rl_acquire_options_new();
  rl_client* client = NULL;
  rl_lease* lease = NULL;
  rl_status status;
  if (argc != 2) {
    fprintf(stderr, "usage: pool URL < FILE\n");
    return 64;
  }
  rl_acquire_options_set(options, "limit", 5, "3", 1, NULL); /* The acquire reports a failure. */
  client = rl_client_open(argv[1], strlen(argv[1]), NULL, err);
  /* A wait of -1: without a limit. */
  if (client != NULL) lease = rl_acquire(client, "pool", 4, -1, options, err);
  if (lease != NULL) {
    puts("begun");
    fflush(stdout);
    report();
    /* RL_E_LOST here would mean that more than three may have worked at the same time. */
    rl_release(lease, err);
  }
  status = rl_error_status(err);
  if (status < 0) fprintf(stderr, "pool: %s\n", rl_error_message(err));
  rl_lease_free(lease);
  rl_client_close(client);
  rl_acquire_options_free(options);
  rl_error_free(err);
  return status < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
