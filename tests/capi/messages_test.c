/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Goal: a message has any length, keeps its status and its beginning without memory, and has the
 * kernel's reason. Method: a quorum of 15 nodes none of which exists; a message about a long URL,
 * while this program's own malloc fails the Nth call; no descriptors.
 *
 * Not built with sanitizers, which need malloc for themselves, nor without glibc.
 */
#include <stdatomic.h>
#include <sys/resource.h>

#include "calls.h"
#include "failures.h"
#include "harness.h"
#include "redlatch/redlatch.h"

enum { MOST_CALLS = 5000 };

/* A quorum of 15 nodes: its message names each, at more than 1,023 bytes. */
static void a_message_names_every_node(void) {
  enum { MANY = 15 };
  rl_error* err = rl_error_new();
  char urls[4096] = "";
  char path[128];
  rl_client* redlock;
  int i;
  for (i = 0; i < MANY; ++i) {
    snprintf(path, sizeof path, "unix:///no-such-folder/%080d ", i);
    strcat(urls, path);
  }
  redlock = rl_redlock_open(urls, strlen(urls), NULL, err);
  REQUIRE(redlock != NULL);
  CHECK_INT(RL_E_UNAVAILABLE, rl_client_connect(redlock, 0, err));
  for (i = 0; i < MANY; ++i) {
    snprintf(path, sizeof path, "/no-such-folder/%080d", i);
    CHECK_HAS(path, rl_error_message(err));
  }
  CHECK(strlen(rl_error_message(err)) > 1023);
  /* The same object, and a short message: nothing of the long one is left. */
  CHECK(rl_redlock_open(TEXT("nonsense"), NULL, err) == NULL);
  CHECK(strlen(rl_error_message(err)) < 252 && strstr(rl_error_message(err), "folder") == NULL);
  rl_redlock_close(redlock);
  rl_error_free(err);
}

/* The status stays, and the text is as much of the message as there is room for. */
static void a_long_message_loses_its_end_only(void) {
  static const char end[] = "(no memory for the rest)";
  rl_error* err = rl_error_new();
  char url[300], whole[1024];
  int cut_count = 0, is_whole = 0;
  long nth;
  snprintf(url, sizeof url, "redis://%0250d:99999", 0); /* The message shows the host. */
  CHECK(rl_client_open(url, strlen(url), NULL, err) == NULL);
  REQUIRE(strlen(rl_error_message(err)) > 300 && strlen(rl_error_message(err)) < sizeof whole);
  strcpy(whole, rl_error_message(err));
  for (nth = 1; nth < MOST_CALLS && !is_whole; ++nth) {
    const char* text;
    rl_status status;
    atomic_store(&calls_left, nth);
    CHECK(rl_client_open(url, strlen(url), NULL, err) == NULL);
    atomic_store(&calls_left, 0);
    text = rl_error_message(err);
    status = rl_error_status(err);
    CHECK(status == RL_E_NO_MEMORY || status == RL_E_INVALID);
    is_whole = strcmp(text, whole) == 0;
    if (status != RL_E_INVALID || is_whole) continue;
    ++cut_count;
    CHECK(strlen(text) > 200 && strncmp(text, whole, 200) == 0);
    CHECK(strcmp(text + strlen(text) - (sizeof end - 1), end) == 0);
  }
  CHECK(is_whole);
  CHECK_INT(1, cut_count);
  CHECK(rl_client_open(TEXT("nonsense"), NULL, err) == NULL);
  CHECK(strlen(rl_error_message(err)) < 250 && strstr(rl_error_message(err), "memory") == NULL);
  rl_error_free(err);
}

/* The kernel's reason: an operator raises another limit for each. */
static void the_reason_of_the_kernel_is_kept(void) {
  rl_error* err = rl_error_new();
  struct rlimit none, before;
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  none = before;
  none.rlim_cur = 0;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  CHECK(rl_client_open(TEXT("redis://localhost"), NULL, err) == NULL);
  CHECK_INT(RL_E_NO_MEMORY, rl_error_status(err));
  CHECK_HAS("cannot create epoll descriptor: Too many open files", rl_error_message(err));
  CHECK(rl_queue_new(err) == NULL);
  CHECK_INT(RL_E_NO_MEMORY, rl_error_status(err));
  CHECK_HAS("cannot create event descriptor: Too many open files", rl_error_message(err));
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
  rl_error_free(err);
}

/* The option has its earlier value, and can be set again; an acquire notices if it was not. */
static void an_option_without_memory_can_be_set_again(void) {
  static const char text[] = "a label that is no short string, however long that may be";
  rl_error* err = rl_error_new();
  rl_client* client = rl_client_open(TEXT("unix:///no-such-folder/socket"), NULL, NULL);
  rl_status status = RL_E_NO_MEMORY;
  long nth;
  for (nth = 1; nth < 20 && status != RL_OK; ++nth) {
    rl_acquire_options* options = rl_acquire_options_new();
    atomic_store(&calls_left, nth);
    status = rl_acquire_options_set(options, TEXT("label"), TEXT(text), err);
    atomic_store(&calls_left, 0);
    if (status != RL_OK) {
      CHECK_INT(RL_E_NO_MEMORY, status);
      CHECK(rl_acquire(client, TEXT("option"), 0, options, err) == NULL);
      CHECK_INT(RL_E_NO_MEMORY, rl_error_status(err));
      CHECK_INT(RL_OK, rl_acquire_options_set(options, TEXT("label"), TEXT(text), err));
    }
    CHECK(rl_acquire(client, TEXT("option"), 0, options, err) == NULL);
    CHECK_INT(RL_E_UNAVAILABLE, rl_error_status(err)); /* The options are right. */
    rl_acquire_options_free(options);
  }
  CHECK(nth > 2 && nth < 20);
  rl_client_close(client);
  rl_error_free(err);
}

static const struct test tests[] = {
    {"a_message_names_every_node", a_message_names_every_node},
    {"the_reason_of_the_kernel_is_kept", the_reason_of_the_kernel_is_kept},
    {"a_long_message_loses_its_end_only", a_long_message_loses_its_end_only},
    {"an_option_without_memory_can_be_set_again", an_option_without_memory_can_be_set_again},
};

int main(int argc, char** argv) { return run_tests(tests, TEST_COUNT(tests), argc, argv); }
