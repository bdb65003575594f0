/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * The C worker of the demo: adds 1 to the number in a file, TIMES times, each time under the lock.
 *
 *     demo_counter URL NAME FILE LOG TIMES [RETAIN]
 *
 * URL "-": without a lock, to see what gets lost. RETAIN, for example 5s: how long the client keeps
 * the lock between two times.
 *
 * Each line of the log: begin and end in microseconds, fence, who, number before, number after.
 */
#define _POSIX_C_SOURCE 200809L

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "redlatch/redlatch.h"

static long long now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Read, pause, write: whoever else is here meanwhile gets lost. Returns 0 on success. */
static int add_one(const char* file_name, const char* log_name, long long fence) {
  const struct timespec pause = {0, 5000000};
  const long long begin_us = now_us();
  long count = -1;
  FILE* file = fopen(file_name, "r+");
  FILE* log;
  if (file == NULL || fscanf(file, "%ld", &count) != 1) return -1;
  nanosleep(&pause, NULL);
  rewind(file);
  fprintf(file, "%08ld\n", count + 1);
  if (fclose(file) != 0) return -1;

  log = fopen(log_name, "a");
  if (log == NULL) return -1;
  fprintf(log, "%lld %lld %lld c-program %ld %ld\n", begin_us, now_us(), fence, count, count + 1);
  return fclose(log);
}

static int add_one_guarded(rl_client* client, char** argv, const rl_acquire_options* options,
                           rl_error* err) {
  rl_lease* lease = rl_acquire(client, argv[2], strlen(argv[2]), 20000, options, err);
  int result = -1;
  if (lease == NULL) return -1;
  result = add_one(argv[3], argv[4], rl_lease_fence(lease));
  /* RL_E_LOST would mean that somebody else may have been inside too. */
  if (rl_release(lease, err) != RL_OK) result = -1;
  rl_lease_free(lease);
  return result;
}

int main(int argc, char** argv) {
  rl_error* err = rl_error_new();
  rl_client* client = NULL;
  rl_acquire_options* options = rl_acquire_options_new();
  const int is_usage = argc == 6 || argc == 7;
  int result = 0;
  int left = is_usage ? atoi(argv[5]) : 0;
  if (!is_usage) {
    fprintf(stderr, "usage: demo_counter URL NAME FILE LOG TIMES [RETAIN]\n");
    return 64;
  }
  if (strcmp(argv[1], "-") != 0) {
    client = rl_client_open(argv[1], strlen(argv[1]), NULL, err);
    if (client == NULL) result = -1;
  }
  if (result == 0 && argc == 7 &&
      rl_acquire_options_set(options, "retain", 6, argv[6], strlen(argv[6]), err) != RL_OK) {
    result = -1;
  }
  while (result == 0 && left-- > 0) {
    result =
        client != NULL ? add_one_guarded(client, argv, options, err) : add_one(argv[3], argv[4], 0);
  }
  if (result != 0) fprintf(stderr, "demo_counter: failed. %s\n", rl_error_message(err));
  rl_client_close(client);
  rl_acquire_options_free(options);
  rl_error_free(err);
  return result == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
