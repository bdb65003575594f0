/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Goal: an embedded server leaves its host as it was: no child, no descriptor, no thread. Method: a
 * program that starts one, as a user's does, and looks at itself; hosts that ignore SIGCHLD, or
 * collect all children themselves.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calls.h"
#include "harness.h"
#include "redlatch/redlatch.h"

static char g_parent[64];
static char g_url[128];

static int64_t server_field(int32_t field) {
  rl_info* info = rl_embedded_inspect(g_url, strlen(g_url), NULL, NULL);
  const int64_t value = rl_info_number(info, RL_PART_SERVER, 0, field);
  CHECK_INT(info != NULL, rl_info_count(info, RL_PART_SERVER));
  CHECK_INT(0, rl_info_count(info, RL_PART_LOCK));
  rl_info_free(info);
  return value;
}

static void use_it(void) {
  rl_error* err = rl_error_new();
  rl_client* client = rl_client_open(g_url, strlen(g_url), NULL, err);
  rl_lease* lease = rl_acquire(client, TEXT("a"), 20000, NULL, err);
  if (!CHECK(lease != NULL)) printf("%s\n", rl_error_message(err));
  CHECK_INT(1, server_field(RL_FIELD_LOCK_COUNT));
  CHECK(server_field(RL_FIELD_PID) > 0);
  rl_release(lease, err);
  rl_lease_free(lease);
  rl_client_close(client);
  rl_error_free(err);
}

static void end_it(void) { EVENTUALLY(server_field(RL_FIELD_PID) == 0, 60000); }

static void a_host_is_left_as_it_was(void) {
  int fds, threads;
  use_it(); /* What is made once in a process is there now. */
  end_it();
  fds = fd_count();
  threads = thread_count();
  use_it();
  CHECK_INT(fds, fd_count());
  EVENTUALLY(thread_count() == threads, 5000);
  CHECK_INT(-1, waitpid(-1, NULL, WNOHANG));
  CHECK_INT(ECHILD, errno);
  end_it();
}

static void a_host_may_ignore_its_children(void) {
  signal(SIGCHLD, SIG_IGN);
  use_it();
  end_it();
  signal(SIGCHLD, SIG_DFL);
}

static atomic_int g_collects = 1;

static void* collect(void* unused) {
  while (atomic_load(&g_collects)) {
    if (waitpid(-1, NULL, 0) < 0) sleep_ms(1);
  }
  return unused;
}

static void a_host_may_collect_all_children(void) {
  pthread_t thread;
  REQUIRE(pthread_create(&thread, NULL, collect, NULL) == 0);
  use_it();
  atomic_store(&g_collects, 0);
  pthread_join(thread, NULL);
  end_it();
}

static void a_client_that_never_used_it_starts_nothing(void) {
  rl_client* client = rl_client_open(g_url, strlen(g_url), NULL, NULL);
  CHECK(client != NULL);
  CHECK_INT(0, server_field(RL_FIELD_PID));
  rl_client_close(client);
}

static void a_forked_child_can_open_its_own(void) {
  int status = -1;
  pid_t child;
  rl_client* client = rl_client_open(g_url, strlen(g_url), NULL, NULL);
  CHECK_INT(RL_OK, rl_client_connect(client, 20000, NULL));
#if !defined(__SANITIZE_THREAD__) /* It ends a child that makes threads. */
  child = fork();
  if (child == 0) {
    use_it();
    _exit(failure_count() == 0 ? 0 : 1);
  }
  CHECK(waitpid(child, &status, 0) == child && status == 0);
#else
  (void)child;
  (void)status;
#endif
  rl_client_close(client);
  end_it();
}

static void looking_at_what_is_none(void) {
  rl_error* err = rl_error_new();
  CHECK(rl_embedded_inspect(TEXT("redis://h"), NULL, err) == NULL);
  CHECK_INT(RL_E_INVALID, rl_error_status(err));
  CHECK_HAS("redis://h", rl_error_message(err));
  CHECK(rl_embedded_inspect(NULL, 0, NULL, err) == NULL);
  CHECK_INT(RL_E_INVALID, rl_error_status(err));
  CHECK(rl_embedded_inspect(TEXT("embedded:///dev"), NULL, err) == NULL);
  CHECK_INT(RL_E_DENIED, rl_error_status(err));
  rl_error_free(err);
}

int main(int argc, char** argv) {
  static const struct test tests[] = {
      {"a_client_that_never_used_it_starts_nothing", a_client_that_never_used_it_starts_nothing},
      {"a_host_is_left_as_it_was", a_host_is_left_as_it_was},
      {"a_host_may_ignore_its_children", a_host_may_ignore_its_children},
      {"a_host_may_collect_all_children", a_host_may_collect_all_children},
      {"a_forked_child_can_open_its_own", a_forked_child_can_open_its_own},
      {"looking_at_what_is_none", looking_at_what_is_none},
  };
  char command[128];
  int result;
  snprintf(g_parent, sizeof g_parent, "/tmp/rl-c-XXXXXX");
  if (mkdtemp(g_parent) == NULL) return 1;
  snprintf(g_url, sizeof g_url, "embedded://%s/e?connect_timeout=20s", g_parent);
  result = run_tests(tests, TEST_COUNT(tests), argc, argv);
  snprintf(command, sizeof command, "rm -rf '%s'", g_parent);
  return system(command) == 0 ? result : 1;
}
