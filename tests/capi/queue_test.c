/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Goal: a watch posts its tag once, starting never waits, and nothing is left of queues, whatever
 * is freed first and while others take; they cost what the header says. Method: a real server,
 * which is stopped where limits have to hold without it; all orders of ending in a thread of its
 * own while grants are under way, and a count of descriptors and threads; calls in a thread that
 * the kernel ends at the first system call. Tags in order: completion_queue_test.cc.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "calls.h"
#include "harness.h"
#include "redlatch/redlatch.h"
#include "server.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { IS_SANITIZED = 1 };
#else
enum { IS_SANITIZED = 0 };
#endif

enum { WAIT_MS = 30000 };

static void a_watch_posts_once(void) {
  rl_client* client = server_client();
  rl_queue* queue = rl_queue_new(NULL);
  rl_request* request = rl_acquire_start(client, TEXT("once"), WAIT_MS, NULL);
  rl_lease* lease;
  CHECK_INT(RL_OK, rl_request_watch(request, queue, 4));
  CHECK_INT(RL_OK, rl_request_watch(request, queue, 5)); /* In the place of 4. */
  CHECK_INT(5, rl_queue_next(queue, WAIT_MS));
  CHECK_INT(0, rl_queue_next(queue, 0));
  CHECK_INT(RL_OK, rl_request_watch(request, queue, 6)); /* It is finished: at once. */
  CHECK_INT(6, rl_queue_next(queue, 0));
  lease = rl_request_take_lease(request);
  rl_request_free(request);
  request = rl_acquire_start(NULL, TEXT("bad"), 0, NULL); /* Finished when it was made. */
  CHECK_INT(RL_OK, rl_request_watch(request, queue, 8));
  CHECK_INT(8, rl_queue_next(queue, 0));
  rl_request_free(request);

  /* Taken back, and freed: nothing. */
  request = rl_acquire_start(client, TEXT("once"), WAIT_MS, NULL);
  CHECK_INT(RL_OK, rl_request_watch(request, queue, 1));
  CHECK_INT(RL_OK, rl_request_watch(request, NULL, 0));
  CHECK_INT(RL_OK, rl_lease_watch(lease, queue, 2));
  CHECK_INT(RL_OK, rl_lease_watch(lease, NULL, 0));
  CHECK_INT(RL_CANCELLED, rl_request_cancel(request));
  CHECK_INT(RL_OK, rl_release(lease, NULL));
  CHECK_INT(0, rl_queue_next(queue, 0));
  CHECK_INT(RL_OK, rl_lease_watch(lease, queue, 3)); /* It is not held: at once. */
  CHECK_INT(3, rl_queue_next(queue, 0));
  rl_request_free(request);
  rl_lease_free(lease);
  lease = rl_acquire(client, TEXT("once"), WAIT_MS, NULL, NULL);
  request = rl_acquire_start(client, TEXT("once"), WAIT_MS, NULL);
  CHECK_INT(RL_OK, rl_request_watch(request, queue, 1));
  CHECK_INT(RL_OK, rl_lease_watch(lease, queue, 2));
  rl_request_free(request);
  rl_lease_free(lease);
  CHECK_INT(0, rl_queue_next(queue, 50));
  rl_queue_free(queue);
  rl_client_close(client);
}

/* Limits that no caller waits for hold, also while the client is in a handshake without an end. The
   attempt takes longer than any wait of this test, and so does the limit of `other`. */
static void limits_hold_while_connecting(void) {
  rl_client* client = client_with("connect_timeout=120s");
  rl_queue* queue = rl_queue_new(NULL);
  rl_request* request;
  rl_request* other;
  rl_request* later;
  kill(server_pid(), SIGSTOP);
  request = rl_acquire_start(client, TEXT("limits"), 50, NULL);
  other = rl_acquire_start(client, TEXT("limits"), 4 * WAIT_MS, NULL);
  CHECK_INT(RL_OK, rl_request_watch(other, queue, 2));
  CHECK_INT(RL_OK, rl_request_watch(request, queue, 1));
  CHECK_INT(1, rl_queue_next(queue, WAIT_MS));
  CHECK(rl_request_status(request) < 0);
  later = rl_acquire_start(client, TEXT("limits"), 50, NULL);
  CHECK_INT(RL_OK, rl_request_watch(later, queue, 3));
  CHECK_INT(3, rl_queue_next(queue, WAIT_MS));
  CHECK(rl_request_status(later) < 0);
  CHECK_INT(RL_PENDING, rl_request_status(other));
  kill(server_pid(), SIGCONT);
  CHECK_INT(2, rl_queue_next(queue, WAIT_MS));
  CHECK_INT(RL_OK, rl_request_status(other));
  rl_request_free(request);
  rl_request_free(other);
  rl_request_free(later);
  rl_queue_free(queue);
  rl_client_close(client);
}

/* A server that reads nothing more holds no caller up, however much there is to be sent. */
static void starting_never_waits_for_the_server(void) {
  enum { PILE = 4000, LONG_MS = 120000 };
  rl_client_options* slow = rl_client_options_new();
  rl_acquire_options* options = rl_acquire_options_new();
  rl_client* client;
  rl_queue* queue = rl_queue_new(NULL);
  rl_request* first;
  rl_request** pile = (rl_request**)calloc(PILE, sizeof *pile);
  char name[1024];
  int64_t started_ms;
  int i;
  memset(name, 'x', sizeof name);
  rl_client_options_set(slow, TEXT("command_timeout"), TEXT("120s"), NULL);
  client = rl_client_open(server_url(), strlen(server_url()), slow, NULL);
  /* An answer that comes after the ttl is RL_E_INVALID. */
  rl_acquire_options_set_ttl_ms(options, 10 * LONG_MS);
  first = rl_acquire_start(client, TEXT("pile"), WAIT_MS, NULL);
  CHECK_INT(RL_OK, rl_request_wait(first, WAIT_MS));
  kill(server_pid(), SIGSTOP);
  started_ms = now_ms();
  for (i = 0; i < PILE; ++i) {
    snprintf(name, 16, "%015d", i);
    name[15] = 'x';
    pile[i] = rl_acquire_start(client, name, sizeof name, -1, options);
    CHECK_INT(RL_OK, rl_request_watch(pile[i], queue, i + 1));
  }
  CHECK(now_ms() - started_ms < 60000); /* One that waited did so for 120 s. */
  kill(server_pid(), SIGCONT);
  for (i = 0; i < PILE; ++i) CHECK(rl_queue_next(queue, LONG_MS) > 0);
  for (i = 0; i < PILE; ++i) CHECK_INT(RL_OK, rl_request_status(pile[i]));
  for (i = 0; i < PILE; ++i) rl_request_free(pile[i]);
  free(pile);
  rl_request_free(first);
  rl_acquire_options_free(options);
  rl_client_options_free(slow);
  rl_queue_free(queue);
  rl_client_close(client);
}

/* ---- ending ---------------------------------------------------------------------------------- */

enum { PENDING_COUNT = 3, PART_COUNT = 5 };

/* A close that gives up waiting for its releases may leave locks on the server. */
static const char patient[] = "command_timeout=60s";

/* What a program may have in hand when it ends, part by part. */
struct estate {
  rl_client* client;
  rl_queue* queue;
  rl_request* pending[PENDING_COUNT];
  rl_lease* lease;
  int order[PART_COUNT];
};

static void end_part(struct estate* all, int part) {
  int i;
  if (part == 0) {
    rl_client_close(all->client);
    all->client = NULL;
  }
  if (part == 1) rl_queue_free(all->queue);
  if (part == 2) rl_lease_free(all->lease);
  if (part == 3 && all->client != NULL) {
    CHECK_INT(RL_OK, rl_client_log_watch(all->client, RL_LOG_NONE, NULL, 0));
  }
  if (part != 4) return;
  for (i = 0; i < PENDING_COUNT; ++i) rl_request_free(all->pending[i]);
}

static void* end_in_order(void* argument) {
  struct estate* all = (struct estate*)argument;
  int i;
  for (i = 0; i < PART_COUNT; ++i) end_part(all, all->order[i]);
  return NULL;
}

static void end_one_way(rl_client* holder, const int* order) {
  struct estate all;
  pthread_t thread;
  rl_lease* lease = rl_acquire(holder, TEXT("end"), WAIT_MS, NULL, NULL);
  static int number;
  int i;
  memcpy(all.order, order, sizeof all.order);
  all.client = client_with(patient);
  all.queue = rl_queue_new(NULL);
  REQUIRE(lease != NULL && all.client != NULL && all.queue != NULL);
  if (++number % 2 == 0) CHECK_INT(RL_OK, rl_queue_drive(all.queue, all.client));
  all.lease = rl_acquire(all.client, TEXT("end-own"), WAIT_MS, NULL, NULL);
  CHECK_INT(RL_OK, rl_lease_watch(all.lease, all.queue, 100));
  CHECK_INT(RL_OK, rl_client_log_watch(all.client, RL_LOG_INFO, all.queue, 200));
  for (i = 0; i < PENDING_COUNT; ++i) {
    all.pending[i] = rl_acquire_start(all.client, TEXT("end"), -1, NULL);
    CHECK_INT(RL_OK, rl_request_watch(all.pending[i], all.queue, i + 1));
  }
  REQUIRE(pthread_create(&thread, NULL, end_in_order, &all) == 0);
  CHECK_INT(RL_OK, rl_release(lease, NULL)); /* Their grant is on its way now. */
  rl_lease_free(lease);
  pthread_join(thread, NULL);
}

/* Heap's algorithm, all orders of the first `count`. */
static void end_in_all_orders(rl_client* holder, int* order, int count) {
  int i;
  if (count == 1) {
    if (failure_count() < 20) end_one_way(holder, order);
    return;
  }
  for (i = 0; i < count; ++i) {
    const int k = count % 2 == 0 ? i : 0;
    int other;
    end_in_all_orders(holder, order, count - 1);
    other = order[k];
    order[k] = order[count - 1];
    order[count - 1] = other;
  }
}

/* Twice, each order then with a queue that drives and with one that does not. */
static void everything_may_end_in_any_order(void) {
  int order[PART_COUNT] = {0, 1, 2, 3, 4};
  rl_client* holder = client_with(patient);
  int fds, threads;
  CHECK_INT(RL_OK, rl_client_connect(holder, WAIT_MS, NULL));
  end_one_way(holder, order); /* What is made once for the process is there from here on. */
  fds = fd_count();
  threads = thread_count();
  end_in_all_orders(holder, order, PART_COUNT);
  end_one_way(holder, order);
  end_in_all_orders(holder, order, PART_COUNT);
  CHECK_INT(fds, fd_count());
  EVENTUALLY(thread_count() == threads, 5000); /* /proc shows one that was joined for a moment. */
  rl_client_close(holder);
  /* Shorter than a provisional lease, which would end by itself. */
  EVENTUALLY(server_number("EXISTS", "end", "end-own", NULL) == 0, 2000);
}

/* ---- ending while tags are taken ------------------------------------------------------------- */

enum { TAG_COUNT = 60, END_ROUNDS = 40 };

struct taker {
  rl_queue* queue;
  atomic_int counts[TAG_COUNT + 1];
};

static void* take_tags(void* argument) {
  struct taker* taker = (struct taker*)argument;
  int64_t tag;
  while ((tag = rl_queue_next(taker->queue, WAIT_MS)) > 0) {
    if (CHECK(tag <= TAG_COUNT)) CHECK_INT(0, atomic_fetch_add(&taker->counts[tag], 1));
  }
  CHECK_INT(-1, tag);
  return NULL;
}

/* A shutdown, while the lock goes round: a tag for each request and lease; freed: at most one. */
static void end_among_takers(rl_client* holder, int is_freeing) {
  static struct taker taker;
  rl_client* client = server_client();
  rl_request* requests[TAG_COUNT];
  rl_lease* lease = rl_acquire(holder, TEXT("taken"), WAIT_MS, NULL, NULL);
  rl_lease* own = rl_acquire(client, TEXT("taken-own"), WAIT_MS, NULL, NULL);
  pthread_t threads[2];
  size_t k;
  int i;
  memset(&taker, 0, sizeof taker);
  taker.queue = rl_queue_new(NULL);
  for (k = 0; k < TEST_COUNT(threads); ++k) {
    REQUIRE(pthread_create(&threads[k], NULL, take_tags, &taker) == 0);
  }
  for (i = 1; i < TAG_COUNT; ++i) {
    requests[i] = rl_acquire_start(client, TEXT("taken"), -1, NULL);
    CHECK_INT(RL_OK, rl_request_watch(requests[i], taker.queue, i));
  }
  CHECK_INT(RL_OK, rl_lease_watch(own, taker.queue, TAG_COUNT));
  rl_request_free(rl_release_start(lease));
  if (!is_freeing) rl_client_shutdown(client);
  for (i = 1; i < TAG_COUNT; ++i) rl_request_free(requests[i]);
  rl_lease_free(own);
  for (k = 0; k < TEST_COUNT(threads); ++k) CHECK_INT(RL_OK, rl_queue_post(taker.queue, -1));
  for (k = 0; k < TEST_COUNT(threads); ++k) pthread_join(threads[k], NULL);
  for (i = 1; i <= TAG_COUNT && !is_freeing; ++i) CHECK_INT(1, atomic_load(&taker.counts[i]));
  CHECK_INT(0, rl_queue_next(taker.queue, 0));
  rl_client_close(client);
  CHECK_INT(0, rl_queue_next(taker.queue, 0));
  rl_queue_free(taker.queue);
  rl_lease_free(lease);
}

static void ends_are_told_to_those_who_take(void) {
  rl_client* holder = server_client();
  int round;
  for (round = 0; round < END_ROUNDS && failure_count() < 20; ++round) {
    end_among_takers(holder, round % 2);
  }
  rl_client_close(holder);
}

/* ---- what costs a system call ---------------------------------------------------------------- */

struct silent {
  void (*body)(struct silent*);
  rl_client* client;
  rl_queue* queue;
  rl_request* pending;
  rl_lease* lease;
  const char* wrong; /* An answer that was not as expected; NULL: there was none. */
  int is_filtered;
  volatile int is_done;
};

/* From here on the kernel ends this thread at any system call but exit. */
static int allow_nothing(void) {
  static struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0), /* The number of the call. */
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_THREAD),
  };
  static const struct sock_fprog program = {TEST_COUNT(filter), filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void* run_silently(void* argument) {
  struct silent* silent = (struct silent*)argument;
  silent->is_filtered = allow_nothing();
  if (!silent->is_filtered) return NULL;
  silent->body(silent);
  silent->is_done = 1;
  syscall(SYS_exit, 0); /* Returning would make other calls. */
  return NULL;
}

/* @return 1: it made none; 0: it made one; -1: cannot be told on this machine. */
static int is_silent(struct silent* silent, void (*body)(struct silent*)) {
  pthread_t thread;
  silent->body = body;
  silent->is_done = 0;
  if (pthread_create(&thread, NULL, run_silently, silent) != 0) return -1;
  pthread_join(thread, NULL);
  return silent->is_filtered ? silent->is_done : -1;
}

static void read_clock(struct silent* unused) {
  struct timespec now;
  (void)unused;
  clock_gettime(CLOCK_BOOTTIME, &now);
}

static void make_a_call(struct silent* unused) {
  (void)unused;
  syscall(SYS_getppid);
}

/* Printing or abort() would be a system call. */
#define EXPECT(condition)       \
  do {                          \
    if (condition) break;       \
    silent->wrong = #condition; \
    return;                     \
  } while (0)

static void read_queue(struct silent* silent) {
  int i;
  for (i = 0; i < 1000; ++i) {
    EXPECT(rl_queue_next(silent->queue, 0) == 0);
    EXPECT(rl_queue_next(silent->queue, -7) == 0); /* No wait. */
    EXPECT(rl_queue_fd(silent->queue) >= 0);
    EXPECT(rl_request_status(silent->pending) == RL_PENDING);
    EXPECT(rl_client_log_next(silent->client, NULL, 0) == 0);
  }
}

static void read_lease(struct silent* silent) {
  int i;
  for (i = 0; i < 1000; ++i) {
    EXPECT(rl_lease_state(silent->lease) == RL_LEASE_HELD);
    EXPECT(rl_lease_remaining_ms(silent->lease) > 0);
    EXPECT(rl_lease_check(silent->lease, NULL) == RL_OK);
  }
}

/* With a client of its own, and a pause before the look. @return as is_silent(). */
static int look_once(void (*body)(struct silent*), int64_t pause_ms) {
  static int number;
  rl_acquire_options* options = rl_acquire_options_new();
  struct silent silent;
  char name[32];
  const size_t length = (size_t)snprintf(name, sizeof name, "silent-%d", ++number);
  int result;
  memset(&silent, 0, sizeof silent);
  silent.client = server_client();
  silent.queue = rl_queue_new(NULL);
  /* A renewal meanwhile would hold the mutex that a look at a lease takes. The lease must not run
     out on a slow machine either. */
  rl_acquire_options_set_renew(options, 0);
  rl_acquire_options_set_ttl_ms(options, RL_MAX_TTL_MS);
  silent.lease = rl_acquire(silent.client, name, length, WAIT_MS, options, NULL);
  rl_acquire_options_free(options);
  CHECK(silent.lease != NULL);
  silent.pending = rl_acquire_start(silent.client, name, length, -1, NULL);
  CHECK_INT(RL_OK, rl_request_watch(silent.pending, silent.queue, 1));
  EVENTUALLY(waiting_count(silent.client, name) == 1, WAIT_MS); /* Its answer has been read. */
  empty_log(silent.client);
  sleep_ms(pause_ms);
  rl_queue_post(silent.queue, 5); /* Once full, it must be quiet again when it is empty. */
  CHECK_INT(5, rl_queue_next(silent.queue, 0));
  result = is_silent(&silent, body);
  if (silent.wrong != NULL) check_that(0, silent.wrong, __FILE__, __LINE__);
  /* One that was killed holds what it held: nothing of that can be freed. */
  if (result == 0) return 0;
  rl_request_free(silent.pending);
  rl_lease_free(silent.lease);
  rl_queue_free(silent.queue);
  rl_client_close(silent.client);
  return result;
}

/* The library's thread may hold a mutex just when a look takes it, most of all on a busy machine:
   then the look waits in a call. After a pause, longer with each try, that thread is idle. A call
   that a look makes by itself is in each try. */
static int is_silent_in_a_try(void (*body)(struct silent*)) {
  enum { TRY_COUNT = 20 };
  const int before = failure_count();
  int i;
  for (i = 0; i < TRY_COUNT && failure_count() == before; ++i) {
    const int result = look_once(body, i * 5);
    if (result != 0) return result;
  }
  return 0;
}

static void looking_costs_no_system_call(void) {
  struct silent silent;
  if (IS_SANITIZED) {
    printf(" (not with a sanitizer, which makes calls of its own)");
    return;
  }
  memset(&silent, 0, sizeof silent);
  if (is_silent(&silent, make_a_call) != 0) {
    printf(" (no seccomp here)");
    return;
  }
  CHECK_INT(1, is_silent_in_a_try(read_queue));
  if (is_silent(&silent, read_clock) != 1) {
    printf(" (the clock is a system call here)");
    return;
  }
  CHECK_INT(1, is_silent_in_a_try(read_lease));
}

static const struct test tests[] = {
    {"a_watch_posts_once", a_watch_posts_once},
    {"limits_hold_while_connecting", limits_hold_while_connecting},
    {"starting_never_waits_for_the_server", starting_never_waits_for_the_server},
    {"everything_may_end_in_any_order", everything_may_end_in_any_order},
    {"ends_are_told_to_those_who_take", ends_are_told_to_those_who_take},
    {"looking_costs_no_system_call", looking_costs_no_system_call},
};

int main(int argc, char** argv) {
  server_url();
  return run_tests(tests, TEST_COUNT(tests), argc, argv);
}
