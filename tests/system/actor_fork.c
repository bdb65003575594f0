/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * The actor's command that forks, and calls everything with the parent's handles in the child.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "actor.h"

enum { CHILD_SECONDS = 10 };

struct child {
  rl_client *client;
  rl_lease *lease;
  rl_request *request;
  rl_error *err;
  FILE *out;
};

static void note(struct child *child, const char *function, rl_status status) {
  fprintf(child->out, "%s:%s,", function, rl_status_name(status));
}

static void note_err(struct child *child, const char *function) {
  note(child, function, rl_error_status(child->err));
}

static void note_request(struct child *child, const char *function, rl_request *request) {
  note(child, function, rl_request_wait(request, 100));
  rl_request_free(request);
}

static void call_everything(struct child *child) {
  rl_error *err = child->err;
  char token[64] = "";
  rl_lease_token(child->lease, token, sizeof token);
  rl_client_connect(child->client, 0, err);
  note_err(child, "connect");
  if (rl_acquire(child->client, "x", 1, 0, NULL, err) != NULL) fail("acquired in a child");
  note_err(child, "acquire");
  note_request(child, "acquire_start", rl_acquire_start(child->client, "x", 1, -1, NULL));
  if (rl_lease_attach(child->client, "x", 1, token, strlen(token), 0, NULL, err)) fail("attached");
  note_err(child, "attach");
  note(child, "check", rl_lease_check(child->lease, err));
  note(child, "wait_lost", rl_lease_wait_lost(child->lease, 100));
  note(child, "extend", rl_extend(child->lease, 60000, err));
  note_request(child, "extend_start", rl_extend_start(child->lease, 60000));
  note(child, "release", rl_release(child->lease, err));
  note_request(child, "release_start", rl_release_start(child->lease));
  note(child, "request_wait", rl_request_wait(child->request, 100));
  note(child, "request_cancel", rl_request_cancel(child->request));
  if (rl_inspect(child->client, "x", 1, err) != NULL) fail("inspected");
  note_err(child, "inspect");
  note(child, "force", rl_force_release_any(child->client, "x", 1, err));
  note(child, "detach", rl_lease_detach(child->lease, NULL, 0, err));
  rl_client_shutdown(child->client);
  rl_request_free(child->request);
  rl_lease_free(child->lease);
  rl_client_close(child->client);
}

/* A client of the child's own works. */
static void call_anew(struct child *child, const char *url) {
  rl_client *client = rl_client_open(url, strlen(url), NULL, child->err);
  rl_lease *lease = rl_acquire(client, "of-the-child", 12, 1000, NULL, child->err);
  note_err(child, "own_acquire");
  note(child, "own_release", rl_release(lease, child->err));
  rl_lease_free(lease);
  rl_client_close(client);
}

static void do_fork(struct call *call) {
  struct child child = {clients[slot(call, "client")], leases[slot(call, "lease")],
                        requests[slot(call, "request")], call->err, NULL};
  char buffer[4096];
  int ends[2];
  int result = 0;
  if (pipe(ends) != 0) fail("pipe");
  const pid_t pid = fork();
  if (pid < 0) fail("fork");
  if (pid == 0) {
    alarm(CHILD_SECONDS); /* a call that hangs ends the child, which the parent sees */
    close(ends[0]);
    child.out = fdopen(ends[1], "w");
    call_everything(&child);
    call_anew(&child, text(call, "url"));
    fflush(child.out);
    _exit(0);
  }
  close(ends[1]);
  FILE *in = fdopen(ends[0], "r");
  const size_t size = fread(buffer, 1, sizeof buffer, in);
  fclose(in);
  waitpid(pid, &result, 0);
  say_status(call, RL_OK);
  say_number(call, "result", result);
  say_bytes(call, "calls", buffer, size);
}

const struct command fork_commands[] = {
    {"fork", do_fork},
    {NULL, NULL},
};
