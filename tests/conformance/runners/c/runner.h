/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * What both ways of running an operation share: its client, its locks, and what is under way.
 */
#ifndef REDLATCH_CONFORMANCE_RUNNER_H
#define REDLATCH_CONFORMANCE_RUNNER_H

#include <pthread.h>

#include "call.h"
#include "redlatch/redlatch.h"

enum { TEXT_SIZE = 2048, LOCK_COUNT = 64, JOB_COUNT = 64, ATTACH_COUNT = 64 };
enum { NO_SUCH_OPERATION = 1000 }; /* Its name is UNKNOWN, which no case expects. */

struct lock {
  char id[32], name[TEXT_SIZE];
  size_t name_length;
  rl_acquire_options* options;
  rl_lease* lease;
  rl_request* request;
  int64_t limit;   /* Of a semaphore, else 0. */
  rl_names* names; /* Of several, else NULL. */
  int64_t seen;    /* The position of the last leader that it has observed; -1: none. */
  /* Of the lease: the tag by which it is watched for recalls, 0 if it is not, how many events have
     come, and the queue for them, which the loop does not need. */
  int64_t recall_tag;
  int told;
  rl_queue* recalls;
};

struct job {
  struct call call;
  rl_error* err;
  rl_status status;
  pthread_t thread;
  /* In the loop: what is waited for, until when, and the tag that it posts. */
  struct lock* lock;
  rl_request* request;
  rl_lease* lease;
  int is_borrowed; /* The request is the lock's. */
  int is_done;
  int64_t end_ms, tag;
};

/* One of them. */
extern rl_client* client;
extern struct job* jobs[JOB_COUNT]; /* By the N of `&N`. */
extern const char* defect;

struct lock* find_lock(const char* id);
/* The one whose lease is watched by `tag`; NULL: none. */
struct lock* lock_recalled_by(int64_t tag);
/* Start an acquire (""), or one to "read" or to "write", or an "upgrade" of the last lease. */
rl_request* start_of(const struct lock* lock, const char* kind, int64_t wait_ms);
/* Make `lease`, if there is one, the lock's, and answer with its numbers. */
void keep_lease(struct call* call, struct lock* lock, rl_lease* lease);
/* Answer with what a lease is like, and with `token`, unless it is NULL. */
/* Every field of `info`, which it frees. */
void show_info(struct call* call, rl_info* info);
/* The numbers of a semaphore; it frees `info`. */
void show_stats(struct call* call, const struct lock* lock, rl_info* info);
/* Show the level of each finding of a check, and free `info`. */
void show_findings(struct call* call, rl_info* info);
/* A state of RL_LEASE_*, or the status that there is instead. */
rl_status show_state(struct call* call, int32_t state);
void show_lease(struct call* call, const rl_lease* lease, const char* token);
/* Run the job `lock` once in a period; fly for the value `lock` (jobs.c). */
rl_status run_once(struct call* call, const struct lock* lock, rl_error* err);
rl_status fly(struct call* call, const struct lock* lock, rl_error* err);
/* Elections (election.c). Give the options of `lock` the id of the candidate. */
rl_status set_candidate(const struct call* call, struct lock* lock);
/* As start_of() has it: "", or "read" for a candidate that would only read. */
const char* side_of_candidate(const struct call* call);
/* The leader of an election, its candidates, and what an observer sees; they free `info`. */
void show_leader(struct call* call, rl_info* info);
void show_participants(struct call* call, rl_info* info);
void show_news(struct call* call, struct lock* lock, rl_info* info);
rl_status read_leader(struct call* call, rl_error* err);
rl_status observe(struct call* call, struct lock* lock, rl_error* err);
/* Recalls (recall.c). Ask the holders, and answer how many heard it. */
rl_status recall(struct call* call, rl_error* err);
void show_heard(struct call* call, rl_status status, int64_t heard);
/* Wait until the lease of `lock` has been recalled, and show its recalls. */
rl_status recalled(struct call* call, struct lock* lock);
rl_status show_recalls(struct call* call, const struct lock* lock);
/* Watch the lease, unless it is watched; and the same for the next lease. */
rl_status watch_recalls(struct lock* lock, rl_queue* queue, int64_t tag);
void forget_recalls(struct lock* lock);
/* Do a job by calls that wait. */
void* work(void* job);
/* .. and free the job. */
void print_answer(struct job* job);
void free_job(struct job* job);

/* Do, start or wait for a job by requests and a queue; print. */
void run_in_loop(struct job* job);
/* After the shutdown: everything that was started has ended. */
void end_loop(void);

#endif
