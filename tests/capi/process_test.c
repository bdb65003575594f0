/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Goal: the library is a good guest in a process: signals, threads, descriptors and the standard
 * streams are as the header says. Method: look at them from outside, in /proc and in files.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "calls.h"
#include "harness.h"
#include "redlatch/redlatch.h"
#include "server.h"

enum { WAIT_MS = 10000 };

static atomic_int signal_count;

static void on_signal(int number) {
  (void)number;
  atomic_fetch_add(&signal_count, 1);
}

/* ---- signals --------------------------------------------------------------------------------- */

struct sleeper {
  pthread_t thread;
  rl_client* client;
  rl_request* request; /* NULL: a blocking acquire. */
  atomic_int is_finished;
  rl_status status;
};

static void* sleep_in_the_library(void* argument) {
  struct sleeper* self = (struct sleeper*)argument;
  if (self->request != NULL) {
    self->status = rl_request_wait(self->request, -1);
  } else {
    rl_error* err = rl_error_new();
    rl_lease* lease = rl_acquire(self->client, TEXT("signal"), 20000, NULL, err);
    self->status = rl_error_status(err);
    rl_lease_free(lease);
    rl_error_free(err);
  }
  atomic_store(&self->is_finished, 1);
  return NULL;
}

/* Send signals until it ends or `limit_ms` is over: one that comes before it sleeps is not felt. */
static void disturb(struct sleeper* sleeper, int64_t limit_ms) {
  const int64_t end_ms = now_ms() + limit_ms;
  while (!atomic_load(&sleeper->is_finished) && now_ms() < end_ms) {
    pthread_kill(sleeper->thread, SIGUSR1);
    sleep_ms(2);
  }
}

static void start_sleeper(struct sleeper* sleeper) {
  atomic_store(&sleeper->is_finished, 0);
  if (!CHECK(pthread_create(&sleeper->thread, NULL, sleep_in_the_library, sleeper) == 0)) abort();
}

/* A busy machine takes its time. */
static const char patient[] = "command_timeout=20s&connect_timeout=20s";

static void check_signals_interrupt(int flags) {
  rl_client* holder = client_with(patient);
  rl_client* second = client_with(patient);
  rl_lease* lease = rl_acquire(holder, TEXT("signal"), WAIT_MS, NULL, NULL);
  rl_request* behind;
  struct sleeper sleeper = {0};
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_signal;
  action.sa_flags = flags;
  sigaction(SIGUSR1, &action, NULL);
  sleeper.client = client_with(patient);
  sleeper.request = rl_acquire_start(sleeper.client, TEXT("signal"), -1, NULL);
  EVENTUALLY(waiting_count(holder, "signal") == 1, WAIT_MS);
  behind = rl_acquire_start(second, TEXT("signal"), -1, NULL);
  EVENTUALLY(waiting_count(holder, "signal") == 2, WAIT_MS);
  start_sleeper(&sleeper);
  disturb(&sleeper, 10000);
  CHECK(atomic_load(&sleeper.is_finished));
  pthread_join(sleeper.thread, NULL);
  CHECK_INT(RL_INTERRUPTED, sleeper.status);
  CHECK_INT(RL_PENDING, rl_request_status(sleeper.request));
  /* Its place is kept: it comes before the one that was behind it. */
  CHECK_INT(RL_OK, rl_release(lease, NULL));
  CHECK_INT(RL_OK, rl_request_wait(sleeper.request, 10000));
  CHECK_INT(RL_PENDING, rl_request_status(behind));
  rl_request_free(sleeper.request);
  CHECK_INT(RL_OK, rl_request_wait(behind, 10000));
  rl_request_free(behind);
  rl_lease_free(lease);
  rl_client_close(holder);
  rl_client_close(second);
  rl_client_close(sleeper.client);
}

static void a_signal_interrupts_the_wait_for_a_request(void) { check_signals_interrupt(0); }

/* SA_RESTART is about system calls; the handler of a host language sets it and still waits. */
static void so_does_a_signal_that_restarts_system_calls(void) {
  check_signals_interrupt(SA_RESTART);
}

static void a_blocking_acquire_goes_on_after_signals(void) {
  rl_client* holder = client_with(patient);
  rl_lease* lease = rl_acquire(holder, TEXT("signal"), WAIT_MS, NULL, NULL);
  struct sleeper sleeper = {0};
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_signal;
  sigaction(SIGUSR1, &action, NULL);
  sleeper.client = client_with(patient);
  atomic_store(&signal_count, 0);
  start_sleeper(&sleeper);
  disturb(&sleeper, 300);
  EVENTUALLY((pthread_kill(sleeper.thread, SIGUSR1), atomic_load(&signal_count) > 10), WAIT_MS);
  CHECK(!atomic_load(&sleeper.is_finished));
  CHECK_INT(RL_OK, rl_release(lease, NULL));
  disturb(&sleeper, 10000);
  pthread_join(sleeper.thread, NULL);
  CHECK_INT(RL_OK, sleeper.status);
  rl_lease_free(lease);
  rl_client_close(holder);
  rl_client_close(sleeper.client);
}

/* ---- threads and descriptors ----------------------------------------------------------------- */

/* Of a thread: its name, and the mask of the signals that it blocks. */
static int read_thread(const char* id, char* name, size_t name_size, uint64_t* blocked) {
  char path[300];
  char line[256];
  FILE* file;
  snprintf(path, sizeof path, "/proc/self/task/%s/status", id);
  file = fopen(path, "r");
  name[0] = '\0';
  *blocked = 0;
  if (file == NULL) return 0;
  while (fgets(line, sizeof line, file) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    if (strncmp(line, "Name:\t", 6) == 0) snprintf(name, name_size, "%.15s", line + 6);
    if (strncmp(line, "SigBlk:\t", 8) == 0) *blocked = strtoull(line + 8, NULL, 16);
  }
  fclose(file);
  return 1;
}

/* @return how many threads are called redlatch; each must block every signal that can be blocked.
 */
static int library_thread_count(void) {
  DIR* directory = opendir("/proc/self/task");
  const struct dirent* entry;
  int count = 0;
  /* KILL and STOP cannot be blocked; 32 and 33 are the C library's own. */
  const uint64_t required =
      ~((UINT64_C(1) << (SIGKILL - 1)) | (UINT64_C(1) << (SIGSTOP - 1)) | (UINT64_C(3) << 31));
  while (directory != NULL && (entry = readdir(directory)) != NULL) {
    char name[64];
    uint64_t blocked;
    if (entry->d_name[0] == '.' || !read_thread(entry->d_name, name, sizeof name, &blocked)) {
      continue;
    }
    if (strcmp(name, "redlatch") != 0) continue;
    ++count;
    CHECK_INT(required, blocked & required);
  }
  if (directory != NULL) closedir(directory);
  return count;
}

static void a_client_has_one_thread_and_joins_it(void) {
  const int before = thread_count();
  rl_client* client = server_client();
  rl_client* second = server_client();
  rl_lease* lease = rl_acquire(client, TEXT("thread"), 0, NULL, NULL);
  rl_lease* more = rl_acquire(client, TEXT("thread-2"), 0, NULL, NULL);
  rl_request* request = rl_acquire_start(client, TEXT("thread"), -1, NULL);
  CHECK_INT(RL_PENDING, rl_request_wait(request, 20));
  CHECK_INT(before + 1, thread_count());
  CHECK_INT(1, library_thread_count());
  rl_lease_free(rl_acquire(second, TEXT("thread-3"), 0, NULL, NULL));
  CHECK(library_thread_count() <= 2);
  CHECK_INT(thread_count() - before, library_thread_count());
  rl_client_close(second);
  CHECK_INT(before + 1, thread_count());
  rl_client_close(client);
  CHECK_INT(before, thread_count());
  rl_request_free(request);
  rl_lease_free(lease);
  rl_lease_free(more);
  CHECK_INT(before, thread_count());
}

static void a_client_that_is_never_used_has_no_thread(void) {
  const int before = thread_count();
  rl_client* client = server_client();
  CHECK_INT(before, thread_count());
  rl_client_close(client);
}

static void open_and_close(int is_used) {
  rl_client* client = server_client();
  if (is_used) {
    rl_lease* lease = rl_acquire(client, TEXT("descriptor"), 5000, NULL, NULL);
    CHECK(lease != NULL);
    rl_lease_free(lease);
  }
  rl_client_close(client);
}

static void descriptors_do_not_leak(void) {
  int before;
  int i;
  open_and_close(1);
  before = fd_count();
  for (i = 0; i < 200; ++i) {
    open_and_close(i % 4 != 0);
  }
  CHECK_INT(before, fd_count());
}

static int is_open(int fd) { return fcntl(fd, F_GETFD) >= 0; }

/* A child program must not inherit the connection. */
static void descriptors_are_closed_by_exec(void) {
  enum { FIRST_FD = 3, FD_COUNT = 256 };
  char was_open[FD_COUNT];
  rl_client* client;
  rl_lease* lease;
  int fd;
  int new_count = 0;
  for (fd = FIRST_FD; fd < FD_COUNT; ++fd) {
    was_open[fd] = (char)is_open(fd);
  }
  client = server_client();
  lease = rl_acquire(client, TEXT("exec"), 0, NULL, NULL);
  for (fd = FIRST_FD; fd < FD_COUNT; ++fd) {
    if (was_open[fd] || !is_open(fd)) continue;
    CHECK((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    ++new_count;
  }
  CHECK(new_count > 0);
  rl_lease_free(lease);
  rl_client_close(client);
}

/* ---- the standard streams -------------------------------------------------------------------- */

/* Things that a chatty library would report: refusals, a dead server, a loss, a misuse. */
static void have_trouble(void) {
  static const char nowhere[] = "redis://:secret@127.0.0.1:1?connect_timeout=50ms";
  rl_acquire_options* options = rl_acquire_options_new();
  rl_client* client = server_client();
  rl_client* lonely = rl_client_open(TEXT(nowhere), NULL, NULL);
  rl_lease* lease;
  CHECK(rl_client_open(TEXT("nonsense"), NULL, NULL) == NULL);
  CHECK_INT(RL_E_UNAVAILABLE, rl_client_connect(lonely, 0, NULL));
  rl_acquire_options_set_ttl_ms(options, 1500);
  lease = rl_acquire(client, TEXT("quiet"), 0, options, NULL);
  CHECK(rl_acquire(client, TEXT("quiet"), 0, options, NULL) == NULL);
  CHECK(server_number("DEL", "quiet", NULL) == 1);
  CHECK_INT(RL_LEASE_LOST, rl_lease_wait_lost(lease, 5000));
  CHECK_INT(RL_E_LOST, rl_release(lease, NULL));
  rl_lease_free(lease);
  lease = rl_acquire(client, TEXT("quiet"), 0, options, NULL);
  server_kill();
  CHECK_INT(RL_LEASE_LOST, rl_lease_wait_lost(lease, 5000));
  CHECK(rl_acquire(client, TEXT("quiet"), 100, options, NULL) == NULL);
  rl_lease_free(lease);
  rl_acquire_options_free(options);
  rl_client_close(client);
  rl_client_close(lonely);
  server_url();
}

static void the_library_prints_nothing(void) {
  char path[] = "/tmp/redlatch-quiet-XXXXXX";
  const int file = mkstemp(path);
  const int out = dup(STDOUT_FILENO);
  const int error = dup(STDERR_FILENO);
  const int before = failure_count();
  struct stat status;
  REQUIRE(file >= 0 && out >= 0 && error >= 0);
  fflush(stdout);
  dup2(file, STDOUT_FILENO);
  dup2(file, STDERR_FILENO);
  have_trouble();
  fflush(stdout);
  dup2(out, STDOUT_FILENO);
  dup2(error, STDERR_FILENO);
  CHECK(fstat(file, &status) == 0);
  /* A check that failed inside has printed too. */
  CHECK_INT(before, failure_count());
  CHECK_INT(0, status.st_size);
  unlink(path);
  close(file);
  close(out);
  close(error);
}

static const struct test tests[] = {
    {"a_signal_interrupts_the_wait_for_a_request", a_signal_interrupts_the_wait_for_a_request},
    {"so_does_a_signal_that_restarts_system_calls", so_does_a_signal_that_restarts_system_calls},
    {"a_blocking_acquire_goes_on_after_signals", a_blocking_acquire_goes_on_after_signals},
    {"a_client_that_is_never_used_has_no_thread", a_client_that_is_never_used_has_no_thread},
    {"a_client_has_one_thread_and_joins_it", a_client_has_one_thread_and_joins_it},
    {"descriptors_do_not_leak", descriptors_do_not_leak},
    {"descriptors_are_closed_by_exec", descriptors_are_closed_by_exec},
    {"the_library_prints_nothing", the_library_prints_nothing},
};

int main(int argc, char** argv) {
  server_url();
  return run_tests(tests, TEST_COUNT(tests), argc, argv);
}
