/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 */
#include "calls.h"

#include <dirent.h>
#include <poll.h>
#include <string.h>

#include "harness.h"
#include "server.h"

rl_client* server_client(void) {
  const char* url = server_url();
  return rl_client_open(url, strlen(url), NULL, NULL);
}

rl_client* client_with(const char* options) {
  char url[256];
  snprintf(url, sizeof url, "%s?%s", server_url(), options);
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

int is_free(const char* name) { return server_number("EXISTS", name, NULL) == 0; }

void check_attachable(rl_client* client, const char* name, const char* token) {
  const int64_t end_ms = now_ms() + 10000;
  rl_lease* lease = NULL;
  while (lease == NULL && now_ms() < end_ms) {
    lease = rl_lease_attach(client, name, strlen(name), token, strlen(token), 0, NULL, NULL);
  }
  REQUIRE(lease != NULL);
  give_back(lease);
  CHECK(is_free(name));
}

void set_password(const char* password) {
  char reply[256], rule[512];
  snprintf(rule, sizeof rule, ">%s", password);
  server_command(reply, sizeof reply, "ACL", "SETUSER", "app", "reset", "on", rule, "~*", "&*",
                 "+@all", NULL);
  CHECK_HAS("OK", reply);
}

void kill_connections(void) {
  char reply[64];
  server_command(reply, sizeof reply, "CLIENT", "KILL", "USER", "app", NULL);
}

static int entry_count(const char* folder) {
  DIR* directory = opendir(folder);
  const struct dirent* entry;
  int count = 0;
  if (!CHECK(directory != NULL)) return -1;
  while ((entry = readdir(directory)) != NULL) count += entry->d_name[0] != '.';
  closedir(directory);
  return count;
}

int thread_count(void) { return entry_count("/proc/self/task"); }

int fd_count(void) { return entry_count("/proc/self/fd"); }
