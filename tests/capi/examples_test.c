/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Goal: the examples that only C has run, and their locks work; tests/docs has those of every
 * language. Method: several processes of the one that adds to a file do so at the same time; an
 * addition is lost as soon as two are inside. Two poll loops take a lock from each other. The build
 * says where the programs are.
 */
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "server.h"

enum { COPY_COUNT = 4, TIMES = 60 };
#define TIMES_TEXT "60"

extern char** environ;

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

static void guards_count_together(void) {
  char path[] = "/tmp/redlatch-counter-XXXXXX";
  pid_t children[COPY_COUNT];
  const int fd = mkstemp(path);
  size_t i;
  REQUIRE(fd >= 0);
  close(fd);
  for (i = 0; i < COPY_COUNT; ++i) {
    children[i] = start(EXAMPLE_DLOPEN_GUARD, server_url(), path);
  }
  for (i = 0; i < COPY_COUNT; ++i) {
    CHECK_INT(0, end_of(children[i]));
  }
  CHECK_INT(COPY_COUNT * TIMES, read_number(path));
  unlink(path);
}

/* ---- the poll loop --------------------------------------------------------------------------- */

enum { REPLY_MS = 20000 };

/* A running poll_loop. */
struct loop {
  pid_t pid;
  int input, output;
  char said[4096]; /* So far. */
  size_t length;
};

static int start_loop(struct loop* loop, const char* first, const char* second) {
  posix_spawn_file_actions_t actions;
  char* argv[5];
  int in[2], out[2];
  int is_started;
  memset(loop, 0, sizeof *loop);
  argv[0] = (char*)EXAMPLE_POLL_LOOP;
  argv[1] = (char*)server_url();
  argv[2] = (char*)first;
  argv[3] = (char*)second;
  argv[4] = NULL;
  if (!CHECK(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0)) return 0;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  is_started = posix_spawn(&loop->pid, argv[0], &actions, NULL, argv, environ) == 0;
  posix_spawn_file_actions_destroy(&actions);
  close(in[0]);
  close(out[1]);
  loop->input = in[1];
  loop->output = out[0];
  return CHECK(is_started);
}

/* Read until it has said `text`. */
static void await(struct loop* loop, const char* text) {
  const int64_t end_ms = now_ms() + REPLY_MS;
  while (strstr(loop->said, text) == NULL && now_ms() < end_ms) {
    struct pollfd pollfd = {loop->output, POLLIN, 0};
    const size_t room = sizeof loop->said - 1 - loop->length;
    ssize_t got = 0;
    if (poll(&pollfd, 1, REPLY_MS) == 1) {
      got = read(loop->output, loop->said + loop->length, room);
    }
    if (got <= 0) break;
    loop->length += (size_t)got;
  }
  CHECK_HAS(text, loop->said);
}

static void end_loop(struct loop* loop) {
  close(loop->output);
  CHECK_INT(0, end_of(loop->pid));
}

static void poll_loops_take_turns(void) {
  struct loop first, second;
  REQUIRE(start_loop(&first, "one", "two"));
  await(&first, "one: held");
  await(&first, "two: held");
  REQUIRE(start_loop(&second, "one", "three"));
  await(&second, "three: held");
  EVENTUALLY(server_number("EXISTS", "{one}:rl1:q", NULL) == 1, REPLY_MS);
  CHECK_INT(1, server_number("DEL", "one", NULL));
  await(&first, "one: lost");
  await(&second, "one: held");
  CHECK_INT(1, write(first.input, "\n", 1));
  await(&first, "one: 0 ms left");
  CHECK(strstr(first.said, "two: 0 ms left") == NULL);
  close(first.input);
  await(&first, "two: given back");
  end_loop(&first);
  close(second.input);
  await(&second, "one: given back");
  await(&second, "three: given back");
  end_loop(&second);
  CHECK_INT(0, server_number("EXISTS", "one", "two", "three", NULL));
}

static void examples_say_when_they_fail(void) {
  static const char* const programs[] = {EXAMPLE_DLOPEN_GUARD, EXAMPLE_POLL_LOOP};
  size_t i;
  for (i = 0; i < TEST_COUNT(programs); ++i) {
    const int status =
        end_of(start(programs[i], "redis://127.0.0.1:1?nonsense=1", "/nonexistent/file"));
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_FAILURE);
  }
}

static const struct test tests[] = {
    {"guards_count_together", guards_count_together},
    {"poll_loops_take_turns", poll_loops_take_turns},
    {"examples_say_when_they_fail", examples_say_when_they_fail},
};

int main(int argc, char** argv) {
  server_url();
  return run_tests(tests, TEST_COUNT(tests), argc, argv);
}
