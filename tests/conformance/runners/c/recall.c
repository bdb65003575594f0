/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Recalls in C. A lease is watched once, from the first line that wants to know, and its lock
 * counts the events that come.
 */
#include "runner.h"

void show_heard(struct call* call, rl_status status, int64_t heard) {
  if (status == RL_OK) add(call, " heard=%lld", (long long)heard);
}

rl_status recall(struct call* call, rl_error* err) {
  size_t name_length, reason_length;
  const char* name = text_of(call, "name", &name_length);
  const char* reason = text_of(call, "reason", &reason_length);
  int64_t heard;
  const rl_status status = rl_recall(client, name, name_length, reason, reason_length, &heard, err);
  show_heard(call, status, heard);
  return status;
}

rl_status show_recalls(struct call* call, const struct lock* lock) {
  char reason[TEXT_SIZE];
  if (lock->told == 0) return RL_TIMEOUT;
  add(call, " count=%lld told=%d reason=", (long long)rl_lease_recall_count(lock->lease),
      lock->told);
  add_text(call, reason, rl_lease_recall_reason(lock->lease, reason, sizeof reason));
  return RL_OK;
}

void forget_recalls(struct lock* lock) {
  rl_queue_free(lock->recalls);
  lock->recalls = NULL;
  lock->recall_tag = 0;
  lock->told = 0;
}

rl_status watch_recalls(struct lock* lock, rl_queue* queue, int64_t tag) {
  if (lock->recall_tag != 0) return RL_OK;
  lock->recall_tag = tag;
  return is(defect, "deaf") ? RL_OK : rl_lease_watch_recall(lock->lease, queue, tag);
}

rl_status recalled(struct call* call, struct lock* lock) {
  int64_t wait_ms = number_of(call, "wait_ms");
  rl_status status = RL_OK;
  if (lock->recall_tag == 0) lock->recalls = rl_queue_new(NULL);
  status = watch_recalls(lock, lock->recalls, 1);
  if (status != RL_OK) {
    forget_recalls(lock);
    return status;
  }
  if (lock->told > 0) wait_ms = 0;
  while (lock->recalls != NULL && rl_queue_next(lock->recalls, wait_ms) != 0) {
    lock->told++;
    wait_ms = 0;
  }
  return show_recalls(call, lock);
}
