/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 */
#include "server.h"

#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

enum { START_LIMIT_MS = 20000, MAX_WORDS = 16 };

struct server {
  char folder[64];
  char path[96];
  char url[112];
  pid_t pid, launcher;
  int input; /* of the launcher, which ends the server when this is closed */
};

static struct server servers[SERVER_COUNT];
static struct server* self = servers;
static pid_t owner_pid;

void server_select(size_t number) { self = &servers[number]; }

static void fail(const char* what) {
  fprintf(stderr, "test server: %s\n", what);
  exit(EXIT_FAILURE);
}

void server_kill(void) {
  if (self->pid == 0) return;
  close(self->input);
  waitpid(self->launcher, NULL, 0);
  self->pid = 0;
}

static void at_exit(void) {
  /* A forked child that calls exit() must not end the parent's server. */
  if (getpid() != owner_pid) return;
  for (self = servers; self < servers + SERVER_COUNT; ++self) server_kill();
}

static void prepare(void) {
  const char* base = getenv("TMPDIR");
  /* The path of a unix socket has room for 107 bytes only. */
  if (base == NULL || strlen(base) > 40) base = "/tmp";
  snprintf(self->folder, sizeof self->folder, "%s/redlatch-XXXXXX", base);
  if (mkdtemp(self->folder) == NULL) fail("no temporary directory");
  snprintf(self->path, sizeof self->path, "%s/s", self->folder);
  snprintf(self->url, sizeof self->url, "unix://%s", self->path);
  if (owner_pid == 0) atexit(at_exit);
  owner_pid = getpid();
}

/* tests/support/server, which says the process id when the server can be reached. */
static void launch(void) {
  char line[32] = "";
  int input[2], output[2];
  struct pollfd said;
  if (pipe2(input, O_CLOEXEC) != 0 || pipe2(output, O_CLOEXEC) != 0) fail("no pipe");
  self->launcher = fork();
  if (self->launcher < 0) fail("cannot fork");
  if (self->launcher == 0) {
    dup2(input[0], STDIN_FILENO);
    dup2(output[1], STDOUT_FILENO);
    execl(TEST_SERVER, TEST_SERVER, self->folder, (char*)NULL);
    _exit(127);
  }
  close(input[0]);
  close(output[1]);
  self->input = input[1];
  said.fd = output[0];
  said.events = POLLIN;
  if (poll(&said, 1, START_LIMIT_MS) == 1 && read(output[0], line, sizeof line - 1) > 0) {
    self->pid = (pid_t)strtol(line, NULL, 10);
  }
  close(output[0]);
  if (self->pid == 0) fail("it did not start");
}

const char* server_url(void) {
  if (self->pid != 0) return self->url;
  if (self->folder[0] == '\0') prepare();
  launch();
  return self->url;
}

pid_t server_pid(void) { return self->pid; }

static int connect_to_server(void) {
  struct sockaddr_un address;
  struct timeval limit = {5, 0};
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  memset(&address, 0, sizeof address);
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, self->path, strlen(self->path) + 1);
  if (connect(fd, (const struct sockaddr*)&address, sizeof address) == 0) return fd;
  close(fd);
  return -1;
}

static int send_words(int fd, const char** words, int word_count) {
  char request[4096];
  size_t length;
  int i;
  length = (size_t)snprintf(request, sizeof request, "*%d\r\n", word_count);
  for (i = 0; i < word_count && length < sizeof request; ++i) {
    length += (size_t)snprintf(request + length, sizeof request - length, "$%zu\r\n%s\r\n",
                               strlen(words[i]), words[i]);
  }
  if (length >= sizeof request) fail("a raw command is too long");
  return send(fd, request, length, MSG_NOSIGNAL) == (ssize_t)length;
}

/* Whether the reply is there in full: one line, and for a bulk string its bytes too. Of an array
   only the first line counts. */
static int is_complete(const char* buffer) {
  const char* end = strstr(buffer, "\r\n");
  if (end == NULL) return 0;
  if (buffer[0] != '$' || buffer[1] == '-') return 1;
  return strlen(end + 2) >= strtoul(buffer + 1, NULL, 10) + 2;
}

static void show_reply(char* reply, size_t reply_size, char* buffer) {
  char* end = strstr(buffer, "\r\n");
  *end = '\0';
  if (buffer[0] == '$' && buffer[1] == '-') {
    snprintf(reply, reply_size, "(nil)");
  } else if (buffer[0] == '$') {
    end[2 + strtoul(buffer + 1, NULL, 10)] = '\0';
    snprintf(reply, reply_size, "%s", end + 2);
  } else if (buffer[0] == '*') {
    snprintf(reply, reply_size, "(array %s)", buffer + 1);
  } else {
    snprintf(reply, reply_size, "%s", buffer[0] == '-' ? buffer : buffer + 1);
  }
}

static int command(char* reply, size_t reply_size, const char** words, int word_count) {
  char buffer[8192] = "";
  size_t length = 0;
  int is_done = 0;
  const int fd = connect_to_server();
  if (fd < 0) return 0;
  if (send_words(fd, words, word_count)) {
    for (;;) {
      const ssize_t got = recv(fd, buffer + length, sizeof buffer - 1 - length, 0);
      if (got <= 0) break;
      length += (size_t)got;
      buffer[length] = '\0';
      is_done = is_complete(buffer);
      if (is_done) break;
    }
  }
  close(fd);
  if (is_done) show_reply(reply, reply_size, buffer);
  return is_done;
}

static int collect(const char** words, const char* first, va_list rest) {
  int count = 0;
  const char* word = first;
  while (word != NULL && count < MAX_WORDS) {
    words[count++] = word;
    word = va_arg(rest, const char*);
  }
  return count;
}

int server_command(char* reply, size_t reply_size, const char* word, ...) {
  const char* words[MAX_WORDS];
  int count;
  va_list rest;
  va_start(rest, word);
  count = collect(words, word, rest);
  va_end(rest);
  return command(reply, reply_size, words, count);
}

int64_t server_number(const char* word, ...) {
  const char* words[MAX_WORDS];
  char reply[64];
  char* end = NULL;
  int64_t number;
  int count;
  va_list rest;
  va_start(rest, word);
  count = collect(words, word, rest);
  va_end(rest);
  if (!command(reply, sizeof reply, words, count)) return -1000;
  number = strtoll(reply, &end, 10);
  return end != reply && *end == '\0' ? number : -1000;
}
