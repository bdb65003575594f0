/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Goal: whatever readers, writers, upgrades, downgrades and their cancels do at the same time,
 * nobody writes beside another, and nothing is left behind. Method: threads of two clients play at
 * random; a witness counts who is inside. The rules one by one are in tests/conformance. Goal: the
 * option mode is what the functions of a read-write lock are. Method: both hold the lock together.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "harness.h"
#include "redlatch/redlatch.h"
#include "server.h"

enum { THREAD_COUNT = 8, ROUND_COUNT = 400, OWNER_COUNT = 3 };

/* Who is inside, as the callers believe. */
static atomic_int readers;
static atomic_int writers;
static atomic_int upgrade_count;
static atomic_int deadlock_count;
static atomic_int cancel_count;
static rl_client* clients[2];
static int32_t format;

static unsigned next_random(unsigned* state) {
  *state = *state * 1103515245u + 12345u;
  return *state >> 16;
}

static void enter_as_writer(void) {
  CHECK_INT(0, atomic_fetch_add(&writers, 1));
  CHECK_INT(0, atomic_load(&readers));
}

static void leave_as_writer(void) { atomic_fetch_sub(&writers, 1); }

static void enter_as_reader(void) {
  atomic_fetch_add(&readers, 1);
  CHECK_INT(0, atomic_load(&writers));
}

static void leave_as_reader(void) { atomic_fetch_sub(&readers, 1); }

static void write_once(rl_lease* lease, unsigned random) {
  enter_as_writer();
  if (random % 2 == 0) {
    leave_as_writer();
    CHECK_INT(RL_OK, rl_rw_downgrade(lease, NULL));
    enter_as_reader();
    CHECK_INT(RL_MODE_READ, rl_lease_mode(lease));
    leave_as_reader();
  } else {
    leave_as_writer();
  }
}

/* Upgrade in one of four ways. The witness counts the thread as a reader until it writes. */
static void read_once(rl_lease* lease, unsigned random) {
  const int64_t before = rl_lease_fence(lease);
  rl_status status = RL_PENDING;
  enter_as_reader();
  leave_as_reader();
  if (random % 4 == 0) return;
  if (random % 4 == 3) {
    rl_request* request = rl_rw_upgrade_start(lease, -1);
    /* At once too: where a millisecond is long, it would be granted before every cancel. */
    rl_request_wait(request, (random >> 2) % 2);
    status = rl_request_cancel(request);
    rl_request_free(request);
    atomic_fetch_add(&cancel_count, status == RL_CANCELLED);
  } else {
    status = rl_rw_upgrade(lease, random % 4 == 1 ? 0 : 50, NULL);
  }
  CHECK(status == RL_OK || status == RL_BUSY || status == RL_TIMEOUT || status == RL_CANCELLED ||
        status == RL_E_DEADLOCK);
  atomic_fetch_add(&deadlock_count, status == RL_E_DEADLOCK);
  CHECK_INT(status == RL_OK ? RL_MODE_WRITE : RL_MODE_READ, rl_lease_mode(lease));
  if (status == RL_OK) {
    CHECK(rl_lease_fence(lease) > before);
    atomic_fetch_add(&upgrade_count, 1);
    write_once(lease, random >> 3);
  } else {
    enter_as_reader();
    leave_as_reader();
  }
}

static void* play(void* argument) {
  const size_t number = (size_t)argument;
  rl_client* client = clients[number % 2];
  rl_acquire_options* options = rl_acquire_options_new();
  unsigned state = (unsigned)number + 1;
  int round;
  CHECK_INT(RL_OK, rl_acquire_options_set_format(options, format));
  for (round = 0; round < ROUND_COUNT; ++round) {
    const unsigned random = next_random(&state);
    const int is_reader = random % 4 != 0;
    rl_lease* lease = is_reader ? rl_rw_acquire_read(client, TEXT("rw"), 20000, options, NULL)
                                : rl_acquire(client, TEXT("rw"), 20000, options, NULL);
    if (!CHECK(lease != NULL)) break;
    if (is_reader) {
      read_once(lease, random >> 2);
    } else {
      write_once(lease, random >> 2);
    }
    CHECK_INT(RL_OK, rl_release(lease, NULL));
    rl_lease_free(lease);
  }
  rl_acquire_options_free(options);
  return NULL;
}

static void run_threads(void* (*function)(void*)) {
  pthread_t threads[THREAD_COUNT];
  size_t i;
  clients[0] = server_client();
  clients[1] = server_client();
  for (i = 0; i < THREAD_COUNT; ++i) {
    REQUIRE(pthread_create(&threads[i], NULL, function, (void*)i) == 0);
  }
  for (i = 0; i < THREAD_COUNT; ++i) pthread_join(threads[i], NULL);
  rl_client_close(clients[0]);
  rl_client_close(clients[1]);
}

static void play_in(int32_t chosen) {
  format = chosen;
  upgrade_count = deadlock_count = cancel_count = 0;
  run_threads(play);
  CHECK(atomic_load(&upgrade_count) > 0);
  CHECK(atomic_load(&deadlock_count) > 0);
  CHECK(atomic_load(&cancel_count) > 0);
  CHECK_INT(0, server_number("EXISTS", "rw", "{rw}:rl1:q", "{rw}:rl1:r", "{rw}:rl1:mq",
                             "{rw}:rl1:mr", NULL));
}

static void readers_and_writers_exclude_each_other(void) { play_in(RL_FORMAT_STRING); }

static void likewise_in_the_format_of_redisson(void) { play_in(RL_FORMAT_HASH_RW); }

/* What each owner believes to hold, all its threads together. */
static atomic_int holds[OWNER_COUNT];

static void check_alone(size_t owner) {
  size_t other;
  for (other = 0; other < OWNER_COUNT; ++other) {
    if (other != owner) CHECK_INT(0, atomic_load(&holds[other]));
  }
}

static void* reenter(void* argument) {
  const size_t number = (size_t)argument;
  const size_t owner = number % OWNER_COUNT;
  const char name = (char)('a' + owner);
  rl_acquire_options* options = rl_acquire_options_new();
  unsigned state = (unsigned)number + 1;
  int round;
  CHECK_INT(RL_OK, rl_acquire_options_set_owner(options, &name, 1));
  CHECK_INT(RL_OK, rl_acquire_options_set_reentrant(options, 1));
  for (round = 0; round < ROUND_COUNT / 4; ++round) {
    const unsigned depth = next_random(&state) % 3 + 1;
    rl_lease* leases[3];
    unsigned i;
    for (i = 0; i < depth; ++i) {
      leases[i] = rl_acquire(clients[number % 2], TEXT("re"), 20000, options, NULL);
      if (!CHECK(leases[i] != NULL)) return NULL;
      atomic_fetch_add(&holds[owner], 1);
      check_alone(owner);
      CHECK(i == 0 || rl_lease_hold_count(leases[i]) > 1);
      CHECK_INT(rl_lease_fence(leases[0]), rl_lease_fence(leases[i]));
    }
    for (i = 0; i < depth; ++i) {
      rl_status status;
      atomic_fetch_sub(&holds[owner], 1);
      status = rl_release(leases[i], NULL);
      CHECK(status == RL_STILL_HELD || (status == RL_OK && i + 1 == depth));
      rl_lease_free(leases[i]);
    }
  }
  rl_acquire_options_free(options);
  return NULL;
}

static void owners_exclude_each_other_and_not_themselves(void) {
  run_threads(reenter);
  CHECK_INT(0, server_number("EXISTS", "re", "{re}:rl1:hq", "{re}:rl1:hr", NULL));
}

static void check_holder(int64_t mode, int32_t holder_count) {
  rl_info* info = rl_inspect(clients[0], TEXT("mode"), NULL);
  int32_t i;
  REQUIRE(info != NULL);
  CHECK_INT(holder_count, rl_info_count(info, RL_PART_HOLDER));
  for (i = 0; i < holder_count; ++i) {
    CHECK_INT(mode, rl_info_number(info, RL_PART_HOLDER, i, RL_FIELD_MODE));
  }
  rl_info_free(info);
}

static rl_lease* acquire_as(rl_acquire_options* options, const char* mode, size_t size) {
  rl_error* err = rl_error_new();
  rl_lease* lease = NULL;
  CHECK_INT(RL_OK, rl_acquire_options_set(options, TEXT("mode"), mode, size, err));
  lease = rl_acquire(clients[0], TEXT("mode"), 0, options, err);
  CHECK_INT(lease != NULL ? RL_OK : RL_BUSY, rl_error_status(err));
  rl_error_free(err);
  return lease;
}

/* One object, whose mode is set again and again. */
static void share_by_option(int32_t chosen) {
  rl_acquire_options* options = rl_acquire_options_new();
  rl_lease *one, *other;
  rl_request* request;
  char text[8];
  CHECK_INT(RL_OK, rl_acquire_options_set_format(options, chosen));
  one = acquire_as(options, TEXT("read"));
  REQUIRE(one != NULL);
  CHECK_INT(RL_MODE_READ, rl_lease_mode(one));
  CHECK_INT(4, rl_acquire_options_get(options, TEXT("mode"), text, sizeof text));
  CHECK(strcmp(text, "read") == 0);
  CHECK(acquire_as(options, TEXT("write")) == NULL);
  other = rl_rw_acquire_read(clients[1], TEXT("mode"), 0, options, NULL);
  REQUIRE(other != NULL);
  check_holder(RL_MODE_READ, 2);
  give_back(other);

  CHECK_INT(RL_OK, rl_rw_upgrade(one, 0, NULL));
  CHECK_INT(RL_MODE_WRITE, rl_lease_mode(one));
  check_holder(RL_MODE_WRITE, 1);
  CHECK(acquire_as(options, TEXT("read")) == NULL);
  give_back(one);

  request = rl_acquire_start(clients[0], TEXT("mode"), 0, options);
  CHECK_INT(RL_OK, rl_request_wait(request, -1));
  one = rl_request_take_lease(request);
  rl_request_free(request);
  CHECK_INT(RL_MODE_READ, rl_lease_mode(one));
  CHECK(rl_rw_acquire_write(clients[1], TEXT("mode"), 0, options, NULL) == NULL);
  give_back(one);

  /* A function of a read-write lock names the mode, whatever the option is. */
  one = rl_rw_acquire_write(clients[1], TEXT("mode"), 0, options, NULL);
  REQUIRE(one != NULL);
  check_holder(RL_MODE_WRITE, 1);
  give_back(one);
  one = acquire_as(options, TEXT("write"));
  REQUIRE(one != NULL);
  CHECK_INT(RL_MODE_WRITE, rl_lease_mode(one));
  CHECK(rl_rw_acquire_read(clients[1], TEXT("mode"), 0, options, NULL) == NULL);
  give_back(one);
  rl_acquire_options_free(options);
}

static void a_bad_mode_fails_the_acquire(void) {
  rl_acquire_options* options = rl_acquire_options_new();
  rl_error* err = rl_error_new();
  CHECK_INT(RL_E_INVALID, rl_acquire_options_set(options, TEXT("mode"), TEXT("reading"), NULL));
  CHECK(rl_acquire(clients[0], TEXT("mode"), 0, options, err) == NULL);
  CHECK_INT(RL_E_INVALID, rl_error_status(err));
  CHECK_HAS("option 'mode' must be write or read (got 'reading')", rl_error_message(err));
  give_back(acquire_as(options, TEXT("read")));
  rl_error_free(err);
  rl_acquire_options_free(options);
}

static void the_option_mode_is_the_functions_of_a_read_write_lock(void) {
  clients[0] = server_client();
  clients[1] = server_client();
  share_by_option(RL_FORMAT_STRING);
  share_by_option(RL_FORMAT_HASH_RW);
  a_bad_mode_fails_the_acquire();
  rl_client_close(clients[0]);
  rl_client_close(clients[1]);
}

static const struct test tests[] = {
    {"the_option_mode_is_the_functions_of_a_read_write_lock",
     the_option_mode_is_the_functions_of_a_read_write_lock},
    {"readers_and_writers_exclude_each_other", readers_and_writers_exclude_each_other},
    {"likewise_in_the_format_of_redisson", likewise_in_the_format_of_redisson},
    {"owners_exclude_each_other_and_not_themselves", owners_exclude_each_other_and_not_themselves},
};

int main(int argc, char** argv) { return run_tests(tests, TEST_COUNT(tests), argc, argv); }
