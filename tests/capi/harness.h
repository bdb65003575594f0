/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * The whole test framework: checks that count, a table of tests, a main. Plain C, so that the ABI
 * is tested as a C program sees it. A program runs all its tests, or those whose names it is given.
 */
#ifndef REDLATCH_TESTS_HARNESS_H
#define REDLATCH_TESTS_HARNESS_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct test {
  const char* name;
  void (*run)(void);
};

#ifdef __cplusplus
extern "C" {
#endif

/* Count a failure unless `is_true`, and say where. Any thread. @return is_true. */
int check_that(int is_true, const char* text, const char* file, int line);
int check_int(int64_t expected, int64_t actual, const char* text, const char* file, int line);
/* `part` must stand in `whole`. */
int check_has(const char* part, const char* whole, const char* file, int line);

/* A test that takes so long hangs, and ends the program by SIGALRM. */
enum { HANG_S = 600 };
int run_tests(const struct test* tests, size_t test_count, int argc, char** argv);

/* Failures so far: a child process ends with it. */
int failure_count(void);

/* A clock that only goes forward. */
int64_t now_ms(void);
void sleep_ms(int64_t ms);

#ifdef __cplusplus
}
#endif

#define CHECK(condition) check_that(!!(condition), #condition, __FILE__, __LINE__)
#define CHECK_INT(expected, actual) \
  check_int((int64_t)(expected), (int64_t)(actual), #actual, __FILE__, __LINE__)
#define CHECK_HAS(part, whole) check_has((part), (whole), __FILE__, __LINE__)

/* End the test (a function that returns void) when going on makes no sense. */
#define REQUIRE(condition)         \
  do {                             \
    if (!CHECK(condition)) return; \
  } while (0)

/* Poll `condition` for at most `limit_ms`; the last look decides, so a slow machine may be late. No
 * look follows one that was met: the condition may have an effect. */
#define EVENTUALLY(condition, limit_ms)                             \
  do {                                                              \
    const int64_t end_ms_ = now_ms() + (limit_ms);                  \
    int is_met_ = !!(condition);                                    \
    while (!is_met_ && now_ms() < end_ms_) {                        \
      sleep_ms(2);                                                  \
      is_met_ = !!(condition);                                      \
    }                                                               \
    if (!is_met_) is_met_ = !!(condition);                          \
    check_that(is_met_, #condition " in time", __FILE__, __LINE__); \
  } while (0)

#define TEST_COUNT(tests) (sizeof(tests) / sizeof(tests)[0])

#endif
