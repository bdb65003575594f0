/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 */
#include "calls.h"

#include <poll.h>
#include <string.h>

#include "harness.h"
#include "server.h"

rl_client* server_client(void) {
  const char* url = server_url();
  return rl_client_open(url, strlen(url), NULL, NULL);
}

void give_back(rl_lease* lease) {
  CHECK_INT(RL_OK, rl_release(lease, NULL));
  rl_lease_free(lease);
}

int is_readable(const rl_queue* queue) {
  struct pollfd pollfd = {rl_queue_fd(queue), POLLIN, 0};
  return poll(&pollfd, 1, 0) == 1;
}

void empty_log(rl_client* client) {
  char line[1024];
  while (rl_client_log_next(client, line, sizeof line) > 0) continue;
}
