/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * A value that many processes want, and that takes long to compute: one of them computes it, the
 * others get its value, and so does every caller for a minute.
 *
 *     cache redis://localhost:6379
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "redlatch/redlatch.h"

enum { TTL_MS = 60000, WAIT_MS = 30000, VALUE_SIZE = 256 };

/* Something slow, such as a query. */
static void compute(char* value) {
  puts("computed");
  sleep(1);
  snprintf(value, VALUE_SIZE, "value of process %ld", (long)getpid());
}

static rl_status read_or_compute(rl_client* client, char* value, rl_error* err) {
  rl_request* request = rl_flight_start(client, "cache", 5, WAIT_MS, NULL);
  rl_status status = rl_request_wait(request, -1);
  rl_lease* lease = rl_request_take_lease(request);
  if (lease != NULL) { /* No value is there, and no other caller computes one. */
    compute(value);
    status = rl_flight_store(lease, value, strlen(value), TTL_MS, err);
    rl_lease_free(lease);
  } else if (status == RL_OK) {
    rl_flight_value(request, value, VALUE_SIZE);
  } else {
    fprintf(stderr, "cache: %s\n", rl_request_message(request));
  }
  rl_request_free(request);
  return status;
}

int main(int argc, char** argv) {
  char value[VALUE_SIZE];
  rl_error* err = rl_error_new();
  rl_client* client = NULL;
  rl_status status = RL_E_INVALID;
  if (argc != 2) {
    fprintf(stderr, "usage: cache URL\n");
    return 64;
  }
  client = rl_client_open(argv[1], strlen(argv[1]), NULL, err);
  if (client != NULL) status = read_or_compute(client, value, err);
  if (status == RL_OK) puts(value);
  if (rl_error_status(err) != RL_OK) fprintf(stderr, "cache: %s\n", rl_error_message(err));
  rl_client_close(client);
  rl_error_free(err);
  return status == RL_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
