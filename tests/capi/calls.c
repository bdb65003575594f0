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

int64_t waiting_count(rl_client* client, const char* name) {
  rl_info* info = rl_inspect(client, name, strlen(name), NULL);
  const int64_t count = rl_info_number(info, RL_PART_LOCK, 0, RL_FIELD_WAITING);
  rl_info_free(info);
  return count;
}

void empty_log(rl_client* client) {
  char line[1024];
  while (rl_client_log_next(client, line, sizeof line) > 0) continue;
}
