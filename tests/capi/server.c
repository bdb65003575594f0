/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 */
#include "server.h"

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

#ifdef __linux__
#include <sys/prctl.h>
#endif

enum { START_LIMIT_MS = 20000, MAX_WORDS = 16 };

struct server {
  char folder[64];
  char path[96];
  char url[112];
  pid_t pid;
};

static struct server servers[SERVER_COUNT];
static struct server* self = servers;
static pid_t owner_pid;

void server_select(size_t number) { self = &servers[number]; }

static void fail(const char* what) {
  fprintf(stderr, "test server: %s\n", what);
  exit(EXIT_FAILURE);
}

static void remove_files(void) {
  char log[96];
  unlink(self->path);
  snprintf(log, sizeof log, "%s/log", self->folder);
  unlink(log);
  rmdir(self->folder);
}

void server_kill(void) {
  if (self->pid == 0) return;
  kill(self->pid, SIGKILL);
  waitpid(self->pid, NULL, 0);
  self->pid = 0;
}

static void at_exit(void) {
  /* A forked child that calls exit() must not end the parent's server. */
  if (getpid() != owner_pid) return;
  for (self = servers; self < servers + SERVER_COUNT; ++self) {
    server_kill();
    if (self->folder[0] != '\0') remove_files();
  }
}

static void become_server(pid_t parent) {
  const char* binary = getenv("REDLATCH_REDIS_SERVER");
  char log[96];
  int fd;
  snprintf(log, sizeof log, "%s/log", self->folder);
  if (binary == NULL) binary = "redis-server";
#ifdef __linux__
  /* A test that crashes or is killed takes its server along. */
  prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
  if (getppid() != parent) _exit(EXIT_FAILURE);
  fd = open("/dev/null", O_RDWR);
  dup2(fd, STDIN_FILENO);
  dup2(fd, STDOUT_FILENO);
  dup2(fd, STDERR_FILENO);
  /* --dir: nothing may be written where the test was started. */
  execlp(binary, binary, "--port", "0", "--unixsocket", self->path, "--save", "", "--appendonly",
         "no", "--dir", self->folder, "--logfile", log, (char*)NULL);
  _exit(127);
}

static void prepare(void) {
  const char* base = getenv("TMPDIR");
  /* The path of a unix socket has room for 107 bytes only. */
  if (base == NULL || strlen(base) > 40) base = "/tmp";
  snprintf(self->folder, sizeof self->folder, "%s/redlatch-XXXXXX", base);
  if (mkdtemp(self->folder) == NULL) fail("no temporary directory");
  snprintf(self->path, sizeof self->path, "%s/s.sock", self->folder);
  snprintf(self->url, sizeof self->url, "unix://%s", self->path);
  if (owner_pid == 0) atexit(at_exit);
  owner_pid = getpid();
}

const char* server_url(void) {
  const int64_t end_ms = now_ms() + START_LIMIT_MS;
  const pid_t parent = getpid();
  char reply[64] = "";
  if (self->pid != 0) return self->url;
  if (self->folder[0] == '\0') prepare();
  unlink(self->path);
  self->pid = fork();
  if (self->pid < 0) fail("cannot fork");
  if (self->pid == 0) become_server(parent);
  while (!server_command(reply, sizeof reply, "PING", NULL) || strcmp(reply, "PONG") != 0) {
    if (waitpid(self->pid, NULL, WNOHANG) == self->pid) {
      self->pid = 0;
      fail("redis-server is not installed, or did not start");
    }
    if (now_ms() > end_ms) fail("redis-server did not answer in time");
    sleep_ms(2);
  }
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
