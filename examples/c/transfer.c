/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * A transfer between two accounts: both are locked together, or none, so that a transfer the other
 * way round at the same time cannot deadlock. An account is a file with a number.
 *
 *     transfer redis://localhost:6379 accounts anna bert 5
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "redlatch/redlatch.h"

static int path_of(char* path, size_t size, const char* folder, const char* account) {
  return snprintf(path, size, "%s/%s", folder, account) < (int)size;
}

static int read_balance(const char* folder, const char* account, long* balance) {
  char path[1024];
  FILE* file = path_of(path, sizeof path, folder, account) ? fopen(path, "r") : NULL;
  int is_read = file != NULL && fscanf(file, "%ld", balance) == 1;
  if (file != NULL) fclose(file);
  if (!is_read) fprintf(stderr, "transfer: %s/%s must have a number\n", folder, account);
  return is_read;
}

static int write_balance(const char* folder, const char* account, long balance) {
  char path[1024];
  FILE* file = path_of(path, sizeof path, folder, account) ? fopen(path, "w") : NULL;
  int is_written = file != NULL && fprintf(file, "%ld\n", balance) > 0;
  if (file != NULL && fclose(file) != 0) is_written = 0;
  if (!is_written) perror("transfer");
  return is_written;
}

static int transfer(const char* folder, const char* from, const char* to, long amount) {
  long source, target;
  if (!read_balance(folder, from, &source) || !read_balance(folder, to, &target)) return 0;
  if (source < amount) {
    printf("refused: %s has only %ld\n", from, source);
    return 1;
  }
  source -= amount;
  target += amount;
  if (!write_balance(folder, from, source) || !write_balance(folder, to, target)) return 0;
  printf("moved %ld: %s has %ld, %s has %ld\n", amount, from, source, to, target);
  return 1;
}

static void add(rl_names* names, const char* account, rl_error* err) {
  char name[512];
  int size = snprintf(name, sizeof name, "account/%s", account);
  if (rl_error_status(err) == RL_OK) {
    rl_names_add(names, name, (size_t)size, RL_MODE_WRITE, err);
  }
}

int main(int argc, char** argv) {
  rl_error* err = rl_error_new();
  rl_names* names = rl_names_new();
  rl_client* client = NULL;
  rl_lease* lease = NULL;
  int is_done = 0;
  if (argc != 6) {
    fprintf(stderr, "usage: transfer URL FOLDER FROM TO AMOUNT\n");
    return 64;
  }
  add(names, argv[3], err); /* The order of the names does not matter. */
  add(names, argv[4], err);
  if (rl_error_status(err) == RL_OK) client = rl_client_open(argv[1], strlen(argv[1]), NULL, err);
  if (client != NULL) lease = rl_acquire_all(client, names, -1, NULL, err);
  if (lease != NULL) {
    is_done = transfer(argv[2], argv[3], argv[4], atol(argv[5]));
    rl_release(lease, err);
  }
  if (rl_error_status(err) < 0) {
    fprintf(stderr, "transfer: %s\n", rl_error_message(err));
    is_done = 0;
  }
  rl_lease_free(lease);
  rl_client_close(client);
  rl_names_free(names);
  rl_error_free(err);
  return is_done ? EXIT_SUCCESS : EXIT_FAILURE;
}
