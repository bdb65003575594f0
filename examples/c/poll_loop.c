/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * One thread waits for several locks at once, in a loop around poll(), beside its other input. It
 * says what it holds and what it loses; a line of input shows all; the end of input gives all back.
 *
 *     poll_loop redis://localhost:6379 reports mail backup
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "redlatch/redlatch.h"

enum { MOST_NAMES = 32 };

/* The number of a name, from 1 on, is the tag of its request; with a minus, of its lease. */
struct entry {
  const char* name;
  rl_request* request; /* That is under way, if any. */
  rl_lease* lease;     /* While it is held. */
  int is_releasing;    /* What the request does. */
};

static struct entry entries[MOST_NAMES];
static int name_count;
static int is_ending;
static int has_failed;
static rl_client* client;
static rl_queue* queue;
static rl_acquire_options* options;

static void fail(const char* name, const char* message) {
  fprintf(stderr, "poll_loop: %s: %s\n", name, message);
  has_failed = is_ending = 1;
}

/* Let the queue tell when `request`, of which nobody will wait, is finished. */
static void go_on(struct entry* entry, rl_request* request, int is_releasing) {
  entry->request = request;
  entry->is_releasing = is_releasing;
  if (request == NULL || rl_request_watch(request, queue, entry - entries + 1) != RL_OK) {
    fail(entry->name, "out of memory");
    rl_request_free(request);
    entry->request = NULL;
  }
}

static void start_waiting(struct entry* entry) {
  go_on(entry, rl_acquire_start(client, entry->name, strlen(entry->name), -1, options), 0);
}

static void give_back(struct entry* entry) { go_on(entry, rl_release_start(entry->lease), 1); }

static void on_finished(struct entry* entry) {
  rl_request* request = entry->request;
  const rl_status status = rl_request_status(request);
  entry->request = NULL;
  if (status < 0) fail(entry->name, rl_request_message(request));
  if (entry->is_releasing) {
    printf("%s: %s\n", entry->name, status == RL_OK ? "given back" : rl_status_text(status));
    rl_lease_free(entry->lease);
    entry->lease = NULL;
  } else if ((entry->lease = rl_request_take_lease(request)) != NULL) {
    printf("%s: held, fence %lld\n", entry->name, (long long)rl_lease_fence(entry->lease));
    if (rl_lease_watch(entry->lease, queue, -(entry - entries + 1)) != RL_OK) {
      fail(entry->name, "out of memory");
    }
    /* The grant may have come before the cancel. */
    if (is_ending) give_back(entry);
  }
  rl_request_free(request);
}

/* The lease is not held any more. If it was given back, that request says so. */
static void on_lease_ended(struct entry* entry) {
  if (entry->lease == NULL || rl_lease_state(entry->lease) != RL_LEASE_LOST) return;
  /* Whatever is done under this lock stops here. */
  printf("%s: lost\n", entry->name);
  rl_lease_free(entry->lease);
  entry->lease = NULL;
  if (entry->request == NULL && !is_ending) start_waiting(entry);
}

static void take_tags(void) {
  int64_t tag;
  while ((tag = rl_queue_next(queue, 0)) != 0) {
    if (tag > 0) {
      on_finished(&entries[tag - 1]);
    } else {
      on_lease_ended(&entries[-tag - 1]);
    }
  }
}

static void take_input(void) {
  char line[256];
  int i;
  if (read(STDIN_FILENO, line, sizeof line) <= 0) {
    is_ending = 1;
    return;
  }
  for (i = 0; i < name_count; ++i) {
    const long long left_ms = (long long)rl_lease_remaining_ms(entries[i].lease);
    printf("%s: %lld ms left\n", entries[i].name, left_ms);
  }
}

/* What is waited for is cancelled, which its tag tells at once; what is held is given back. */
static void begin_to_end(void) {
  int i;
  for (i = 0; i < name_count; ++i) {
    if (entries[i].request != NULL && !entries[i].is_releasing) {
      rl_request_cancel(entries[i].request);
    } else if (entries[i].request == NULL && entries[i].lease != NULL) {
      give_back(&entries[i]);
    }
  }
}

static int is_busy(void) {
  int i = 0;
  while (i < name_count && entries[i].request == NULL) ++i;
  return i < name_count;
}

static void run_loop(void) {
  struct pollfd fds[2] = {{STDIN_FILENO, POLLIN, 0}, {-1, POLLIN, 0}};
  int i;
  fds[1].fd = rl_queue_fd(queue);
  for (i = 0; i < name_count; ++i) start_waiting(&entries[i]);
  while (!is_ending) {
    fflush(stdout);
    if (poll(fds, 2, -1) < 0) continue; /* A signal. */
    if (fds[1].revents != 0) take_tags();
    if (fds[0].revents != 0) take_input();
  }
  begin_to_end();
  while (is_busy()) {
    if (poll(&fds[1], 1, -1) > 0) take_tags();
  }
}

int main(int argc, char** argv) {
  rl_error* err = rl_error_new();
  int i;
  if (argc < 3 || argc - 2 > MOST_NAMES) {
    fprintf(stderr, "usage: poll_loop URL NAME [NAME..]\n");
    return 64;
  }
  for (name_count = 0; name_count < argc - 2; ++name_count) {
    entries[name_count].name = argv[name_count + 2];
  }
  client = rl_client_open(argv[1], strlen(argv[1]), NULL, err);
  if (client != NULL) queue = rl_queue_new(err);
  options = rl_acquire_options_new();
  /* A lock that is taken away is noticed by its renewal, after a third of this. */
  rl_acquire_options_set_ttl_ms(options, 3000);
  if (queue != NULL) {
    run_loop();
  } else {
    fail("cannot begin", rl_error_message(err));
  }
  for (i = 0; i < name_count; ++i) rl_lease_free(entries[i].lease);
  rl_acquire_options_free(options);
  rl_queue_free(queue);
  rl_client_close(client);
  rl_error_free(err);
  return has_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
