/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * The C runner without threads: whatever can be started is started, its end is told by a queue, and
 * one loop polls for all of it. What has no such form is called as it is.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "runner.h"

static rl_queue* queue;
static int64_t last_tag;

static int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Listing is left to the runner that waits: it is many requests. */
static rl_request* start_on_client(struct call* call, const char* op) {
  size_t name_length, length;
  const char* name = text_of(call, "name", &name_length);
  const char* token;
  if (is(op, "inspect")) return rl_inspect_start(client, name, name_length);
  if (is(op, "leader") || is(op, "participants")) {
    return rl_leader_start(client, name, name_length);
  }
  if (is(op, "recall") || is(op, "resign")) {
    const char* reason = text_of(call, "reason", &length);
    return rl_recall_start(client, name, name_length, reason, length);
  }
  if (is(op, "force_release_any")) return rl_force_release_any_start(client, name, name_length);
  if (!is(op, "force_release")) return NULL;
  token = text_of(call, "token", &length);
  return rl_force_release_start(client, name, name_length, token, length);
}

/* NULL after a mistake, which the call that waits finds again. */
static rl_request* start_campaign(struct job* job, int64_t wait_ms) {
  if (set_candidate(&job->call, job->lock) != RL_OK) return NULL;
  return start_of(job->lock, side_of_candidate(&job->call), wait_ms);
}

static rl_request* start(struct job* job) {
  const struct lock* lock = job->lock;
  const char* op = job->call.op;
  const int64_t wait_ms = number_of(&job->call, "wait_ms");
  const char* token;
  size_t length;
  if (lock == NULL && is(op, "connect")) {
    return rl_client_connect_start(client, wait_ms);
  }
  if (lock == NULL && is(op, "check")) return rl_client_check_start(client, wait_ms);
  if (lock == NULL) return start_on_client(&job->call, op);
  if (is(op, "attach")) {
    token = text_of(&job->call, "token", &length);
    return rl_lease_attach_start(client, lock->name, lock->name_length, token, length,
                                 number_of(&job->call, "fence"), lock->options);
  }
  if (is(op, "campaign")) return start_campaign(job, wait_ms);
  if (is(op, "observe")) {
    return rl_leader_watch_start(client, lock->name, lock->name_length, lock->seen, wait_ms);
  }
  if (is(op, "stats")) return rl_semaphore_stats_start(client, lock->name, lock->name_length);
  if (is(op, "acquire")) return start_of(lock, "", wait_ms);
  if (is(op, "acquire_read")) return start_of(lock, "read", wait_ms);
  if (is(op, "acquire_write")) return start_of(lock, "write", wait_ms);
  if (lock->lease == NULL || is(defect, "ignore_release")) return NULL;
  if (is(op, "release")) return rl_release_start(lock->lease);
  if (is(op, "upgrade")) return start_of(lock, "upgrade", wait_ms);
  if (is(op, "downgrade")) return rl_rw_downgrade_start(lock->lease);
  if (is(op, "detach")) return rl_lease_detach_start(lock->lease);
  return is(op, "extend") ? rl_extend_start(lock->lease, number_of(&job->call, "ttl_ms")) : NULL;
}

static void take_tags(void);

/* @return whether its lease has yet to be recalled. After a mistake it is not watched: the call
 * that waits finds the mistake again. */
static int begin_recalled(struct job* job) {
  struct lock* lock = job->lock;
  if (watch_recalls(lock, queue, ++last_tag) != RL_OK) {
    forget_recalls(lock);
    return 0;
  }
  take_tags();
  job->tag = lock->recall_tag;
  return lock->told == 0;
}

/* @return whether something is under way that posts a tag. */
static int begin(struct job* job) {
  const int64_t wait_ms = number_of(&job->call, "wait_ms");
  const int may_wait = wait_ms >= -1;
  struct lock* lock = is(job->call.target, "-") ? NULL : find_lock(job->call.target);
  job->lock = lock;
  job->tag = ++last_tag;
  job->end_ms = -1;
  job->request = start(job);
  if (job->request != NULL) return rl_request_watch(job->request, queue, job->tag) == RL_OK;
  if (lock == NULL || !may_wait) return 0;
  if (wait_ms >= 0) job->end_ms = now_ms() + wait_ms;
  if (is(job->call.op, "poll") && lock->request != NULL) {
    job->request = lock->request;
    job->is_borrowed = 1;
    return rl_request_watch(job->request, queue, job->tag) == RL_OK;
  }
  if (is(job->call.op, "recalled")) return begin_recalled(job);
  if (!is(job->call.op, "wait_lost") || lock->lease == NULL) return 0;
  job->lease = lock->lease;
  return rl_lease_watch(job->lease, queue, job->tag) == RL_OK;
}

static void show_detached(struct job* job) {
  char token[40];
  rl_lease_token(job->lock->lease, token, sizeof token);
  show_lease(&job->call, job->lock->lease, token);
}

/* What a question was answered with. */
static void show_answer(struct job* job) {
  struct call* call = &job->call;
  if (is(call->op, "check") && job->lock == NULL && job->status == RL_OK) {
    show_findings(call, rl_request_take_info(job->request));
  }
  if (is(call->op, "recall") || is(call->op, "resign")) {
    show_heard(call, job->status, rl_recall_heard(job->request));
  }
  if (is(call->op, "stats")) show_stats(call, job->lock, rl_request_take_info(job->request));
  if (is(call->op, "inspect")) show_info(call, rl_request_take_info(job->request));
  if (is(call->op, "leader")) show_leader(call, rl_request_take_info(job->request));
  if (is(call->op, "participants")) show_participants(call, rl_request_take_info(job->request));
  if (is(call->op, "observe")) show_news(call, job->lock, rl_request_take_info(job->request));
}

/* Its tag has come, or its time is over. */
static void finish(struct job* job) {
  job->is_done = 1;
  if (is(job->call.op, "recalled")) {
    job->status = show_recalls(&job->call, job->lock);
    return;
  }
  if (job->lease != NULL) {
    const int32_t state = rl_lease_state(job->lease);
    if (state == RL_LEASE_HELD) rl_lease_watch(job->lease, NULL, 0);
    job->status = show_state(&job->call, state);
    return;
  }
  job->status = rl_request_status(job->request);
  if (job->status == RL_PENDING) rl_request_watch(job->request, NULL, 0);
  if (is(job->call.op, "detach") && job->status == RL_OK) show_detached(job);
  show_answer(job);
  /* One that ends only now is taken by the next poll, which says that it is granted. */
  if (job->status != RL_PENDING) {
    keep_lease(&job->call, job->lock, rl_request_take_lease(job->request));
  }
  if (!job->is_borrowed) rl_request_free(job->request);
}

static void take_tags(void) {
  int64_t tag;
  while ((tag = rl_queue_next(queue, 0)) != 0) {
    struct lock* lock = lock_recalled_by(tag);
    if (lock != NULL) ++lock->told;
    for (int i = 0; i < JOB_COUNT; ++i) {
      if (jobs[i] != NULL && !jobs[i]->is_done && jobs[i]->tag == tag) finish(jobs[i]);
    }
  }
}

/* One turn: sleep until a tag comes or the time of a job is over. */
static void turn(void) {
  struct pollfd pollfd = {rl_queue_fd(queue), POLLIN, 0};
  int64_t end_ms = -1;
  for (int i = 0; i < JOB_COUNT; ++i) {
    if (jobs[i] == NULL || jobs[i]->is_done || jobs[i]->end_ms < 0) continue;
    if (end_ms < 0 || jobs[i]->end_ms < end_ms) end_ms = jobs[i]->end_ms;
  }
  if (end_ms >= 0) {
    const int64_t left_ms = end_ms - now_ms();
    poll(&pollfd, 1, left_ms > 0 ? (int)(left_ms > 60000 ? 60000 : left_ms) : 0);
  } else {
    poll(&pollfd, 1, -1);
  }
  take_tags();
  for (int i = 0; i < JOB_COUNT; ++i) {
    const int is_late = jobs[i] != NULL && jobs[i]->end_ms >= 0 && now_ms() >= jobs[i]->end_ms;
    if (is_late && !jobs[i]->is_done) finish(jobs[i]);
  }
}

void run_in_loop(struct job* job) {
  int number = job->call.job % JOB_COUNT;
  if (queue == NULL) queue = rl_queue_new(NULL);
  if (number != 0 && is(job->call.op, "wait") && jobs[number] != NULL) {
    free_job(job);
  } else {
    free_job(jobs[number]);
    jobs[number] = job;
    if (!begin(job)) {
      work(job);
      job->is_done = 1;
    } else if (is(defect, "early_answer")) {
      finish(job);
    }
    if (number != 0) {
      puts("STARTED");
      return;
    }
  }
  while (!jobs[number]->is_done) turn();
  print_answer(jobs[number]);
  jobs[number] = NULL;
}

void end_loop(void) {
  for (int i = 0; i < JOB_COUNT; ++i) {
    while (jobs[i] != NULL && !jobs[i]->is_done) turn();
    free_job(jobs[i]);
  }
  rl_queue_free(queue);
}
