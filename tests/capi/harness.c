/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 */
#include "harness.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

static atomic_int failures;

int failure_count(void) { return atomic_load(&failures); }

int check_that(int is_true, const char* text, const char* file, int line) {
  if (!is_true) {
    atomic_fetch_add(&failures, 1);
    fprintf(stderr, "%s:%d: not so: %s\n", file, line, text);
  }
  return is_true;
}

int check_int(int64_t expected, int64_t actual, const char* text, const char* file, int line) {
  if (expected == actual) return 1;
  atomic_fetch_add(&failures, 1);
  fprintf(stderr, "%s:%d: %s is %lld, expected %lld\n", file, line, text, (long long)actual,
          (long long)expected);
  return 0;
}

int check_has(const char* part, const char* whole, const char* file, int line) {
  if (whole != NULL && strstr(whole, part) != NULL) return 1;
  atomic_fetch_add(&failures, 1);
  fprintf(stderr, "%s:%d: no '%s' in '%s'\n", file, line, part, whole == NULL ? "(NULL)" : whole);
  return 0;
}

int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void sleep_ms(int64_t ms) {
  struct timespec left = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

/* Arguments name the tests to run, or with a '-' before each name those to leave out. */
static int is_chosen(const char* name, int argc, char** argv) {
  int i;
  for (i = 1; i < argc; ++i) {
    if (strcmp(name, argv[i]) == 0) return 1;
    if (argv[i][0] == '-' && strcmp(name, argv[i] + 1) == 0) return 0;
  }
  return argc < 2 || argv[1][0] == '-';
}

int run_tests(const struct test* tests, size_t test_count, int argc, char** argv) {
  size_t i;
  int run_count = 0;
  for (i = 0; i < test_count; ++i) {
    const int before = failure_count();
    const int64_t start_ms = now_ms();
    if (!is_chosen(tests[i].name, argc, argv)) continue;
    printf("%s ..", tests[i].name);
    fflush(stdout);
    /* A test that hangs must fail by itself: its server dies with it, and the name is on the
     * screen. Speed is not tested here: with ThreadSanitizer on a busy machine a test takes ten
     * times as long as alone. */
    alarm(HANG_S);
    tests[i].run();
    ++run_count;
    printf(" %s, %lld ms\n", failure_count() == before ? "ok" : "FAILED",
           (long long)(now_ms() - start_ms));
    fflush(stdout);
  }
  if (run_count == 0) {
    fprintf(stderr, "no such test\n");
    return EXIT_FAILURE;
  }
  return failure_count() == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
