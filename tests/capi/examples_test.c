/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Goal: the examples run, and their lock works. Method: several processes of all of them add to one
 * file at the same time; an addition is lost as soon as two are inside. The build says where the
 * programs are.
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "server.h"

enum { COPY_COUNT = 2, TIMES = 60 };
#define TIMES_TEXT "60"

extern char** environ;

static const char* const programs[] = {EXAMPLE_GUARD_C, EXAMPLE_GUARD_CC, EXAMPLE_DLOPEN_GUARD};

static pid_t start(const char* program, const char* url, const char* file) {
  pid_t pid = 0;
  posix_spawn_file_actions_t quiet;
  int is_started;
  char* argv[6];
  argv[0] = (char*)program;
  argv[1] = (char*)url;
  argv[2] = (char*)file;
  argv[3] = (char*)TIMES_TEXT;
  argv[4] = strcmp(program, EXAMPLE_DLOPEN_GUARD) == 0 ? (char*)REDLATCH_LIBRARY : NULL;
  argv[5] = NULL;
  /* What they complain about is expected here, and would look like a failure of the test. */
  posix_spawn_file_actions_init(&quiet);
  posix_spawn_file_actions_addopen(&quiet, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  is_started = posix_spawn(&pid, program, &quiet, NULL, argv, environ) == 0;
  posix_spawn_file_actions_destroy(&quiet);
  return CHECK(is_started) ? pid : 0;
}

static int end_of(pid_t pid) {
  int status = -1;
  if (pid > 0) waitpid(pid, &status, 0);
  return status;
}

static long read_number(const char* path) {
  long number = -1;
  FILE* file = fopen(path, "r");
  if (file == NULL) return -1;
  if (fscanf(file, "%ld", &number) != 1) number = -1;
  fclose(file);
  return number;
}

static void examples_count_together(void) {
  char path[] = "/tmp/redlatch-counter-XXXXXX";
  pid_t children[TEST_COUNT(programs) * COPY_COUNT];
  const int fd = mkstemp(path);
  size_t i;
  REQUIRE(fd >= 0);
  close(fd);
  for (i = 0; i < TEST_COUNT(children); ++i) {
    children[i] = start(programs[i % TEST_COUNT(programs)], server_url(), path);
  }
  for (i = 0; i < TEST_COUNT(children); ++i) {
    CHECK_INT(0, end_of(children[i]));
  }
  CHECK_INT(TEST_COUNT(children) * TIMES, read_number(path));
  unlink(path);
}

static void examples_say_when_they_fail(void) {
  size_t i;
  for (i = 0; i < TEST_COUNT(programs); ++i) {
    const int status =
        end_of(start(programs[i], "redis://127.0.0.1:1?nonsense=1", "/nonexistent/file"));
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_FAILURE);
  }
}

static const struct test tests[] = {
    {"examples_count_together", examples_count_together},
    {"examples_say_when_they_fail", examples_say_when_they_fail},
};

int main(int argc, char** argv) {
  server_url();
  return run_tests(tests, TEST_COUNT(tests), 60, argc, argv);
}
