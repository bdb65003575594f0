/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Elections in C: a candidate acquires with an id, and an observer passes the position of the last
 * answer to the next call.
 */
#include <string.h>

#include "runner.h"

/* The options of the lock keep the id: its next campaign sets another one. */
rl_status set_candidate(const struct call* call, struct lock* lock) {
  size_t length;
  const char* id = text_of(call, "id", &length);
  if (is(defect, "forget_id")) return RL_OK;
  return rl_acquire_options_set(lock->options, "id", strlen("id"), id, length, NULL);
}

const char* side_of_candidate(const struct call* call) {
  size_t length;
  return is(text_of(call, "mode", &length), "read") ? "read" : "";
}

static void add_id(struct call* call, const rl_info* info, int32_t part, int32_t row) {
  char id[TEXT_SIZE];
  add_text(call, id, rl_info_text(info, part, row, RL_FIELD_CANDIDATE, id, sizeof id));
}

static int has_id(const rl_info* info, int32_t part, int32_t row) {
  return row < rl_info_count(info, part) &&
         rl_info_text(info, part, row, RL_FIELD_CANDIDATE, NULL, 0) > 0;
}

void show_leader(struct call* call, rl_info* info) {
  const int is_led = has_id(info, RL_PART_HOLDER, 0);
  if (info == NULL) return;
  add(call, " id=");
  if (is_led) add_id(call, info, RL_PART_HOLDER, 0);
  add(call, " term=%lld",
      is_led ? (long long)rl_info_number(info, RL_PART_LOCK, 0, RL_FIELD_FENCE) : 0);
  rl_info_free(info);
}

void show_participants(struct call* call, rl_info* info) {
  static const int32_t parts[] = {RL_PART_HOLDER, RL_PART_WAITER};
  const char* separator = "";
  if (info == NULL) return;
  add(call, " ids=");
  for (int i = 0; i < 2; ++i) {
    for (int32_t row = 0; row < rl_info_count(info, parts[i]); ++row) {
      if (!has_id(info, parts[i], row)) continue;
      add(call, "%s", separator);
      add_id(call, info, parts[i], row);
      separator = ",";
    }
  }
  rl_info_free(info);
}

void show_news(struct call* call, struct lock* lock, rl_info* info) {
  if (info == NULL) return;
  if (!is(defect, "forget_position")) {
    lock->seen = rl_info_number(info, RL_PART_LOCK, 0, RL_FIELD_POSITION);
  }
  show_leader(call, info);
}

rl_status read_leader(struct call* call, rl_error* err) {
  size_t length;
  const char* name = text_of(call, "name", &length);
  rl_info* info = rl_leader(client, name, length, err);
  if (is(call->op, "leader")) {
    show_leader(call, info);
  } else {
    show_participants(call, info);
  }
  return rl_error_status(err);
}

rl_status observe(struct call* call, struct lock* lock, rl_error* err) {
  show_news(call, lock,
            rl_leader_watch(client, lock->name, lock->name_length, lock->seen,
                            number_of(call, "wait_ms"), err));
  return rl_error_status(err);
}
