/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * The C runner of the conformance suite: reads a line, does it, prints a line; SPEC.md says what
 * the lines mean. One client in each process; `&N` gives an operation a thread of its own. With the
 * argument `queue` one thread does everything, by requests and a queue (loop.c).
 * REDLATCH_RUNNER_DEFECT plants a defect, so that the suite can be seen to fail.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runner.h"

rl_client* client;
struct job* jobs[JOB_COUNT];
const char* defect = "";

static struct lock locks[LOCK_COUNT];

struct lock* find_lock(const char* id) {
  int i = 0;
  while (i < LOCK_COUNT - 1 && locks[i].id[0] != '\0' && !is(locks[i].id, id)) ++i;
  return &locks[i];
}

struct lock* lock_recalled_by(int64_t tag) {
  for (int i = 0; i < LOCK_COUNT; ++i) {
    if (locks[i].recall_tag == tag) return &locks[i];
  }
  return NULL;
}

static rl_status open_client(struct call* call, rl_error* err) {
  rl_client_options* options = rl_client_options_new();
  size_t length;
  const char* url = text_of(call, "url", &length);
  const int is_quorum = length == 0;
  int i;
  if (is_quorum) url = text_of(call, "urls", &length);
  if (is_quorum && is(defect, "one_node")) length = strcspn(url, " ");
  for (i = 0; i < call->argument_count; ++i) {
    if (is(call->keys[i], is_quorum ? "urls" : "url")) continue;
    rl_client_options_set(options, call->keys[i], strlen(call->keys[i]), call->values[i],
                          call->lengths[i], err);
    if (rl_error_status(err) != RL_OK) break;
  }
  if (i == call->argument_count && is_quorum) {
    client = rl_redlock_open(url, length, options, err);
  } else if (i == call->argument_count) {
    client = rl_client_open(url, length, options, err);
  }
  rl_client_options_free(options);
  return rl_error_status(err);
}

static rl_status set_owner(rl_acquire_options* options, const char* kind, const char* text,
                           size_t length) {
  char own[TEXT_SIZE];
  if (is(defect, "own_owner")) {
    const int size = snprintf(own, sizeof own, "%ld-", (long)getpid());
    memcpy(own + size, text, length);
    text = own;
    length += (size_t)size;
  }
  if (is(kind, "reentrant")) rl_acquire_options_set_reentrant(options, 1);
  return rl_acquire_options_set_owner(options, text, length);
}

static int32_t format_of(const char* text) {
  if (is(text, "string")) return RL_FORMAT_STRING;
  if (is(text, "hash-rw")) return RL_FORMAT_HASH_RW;
  return is(text, "hash") ? RL_FORMAT_HASH : atoi(text);
}

static rl_status set_duration(rl_acquire_options* options, const char* key, const char* ms) {
  char value[32];
  const int size = snprintf(value, sizeof value, "%sms", ms);
  if (is(defect, "forget_retain") && is(key, "retain")) return RL_OK;
  return rl_acquire_options_set(options, key, strlen(key), value, (size_t)size, NULL);
}

static rl_status set_option(rl_acquire_options* options, const char* kind, const char* key,
                            const char* text, size_t length) {
  const int64_t number = strtoll(text, NULL, 10);
  const int32_t small = (int32_t)number;
  if (is(key, "ttl_ms")) return rl_acquire_options_set_ttl_ms(options, number);
  if (is(key, "renew")) return rl_acquire_options_set_renew(options, small);
  if (is(key, "max_hold_ms")) return rl_acquire_options_set_max_hold_ms(options, number);
  if (is(key, "confirm")) return rl_acquire_options_set_confirm(options, small);
  if (is(key, "max_local_handoffs"))
    return rl_acquire_options_set_max_local_handoffs(options, small);
  if (is(key, "yield_every")) return rl_acquire_options_set_yield_every(options, small);
  if (is(key, "yield_ms")) {
    return rl_acquire_options_set_yield_ms(options, number);
  }
  if (is(key, "min_replicas")) {
    return rl_acquire_options_set(options, key, strlen(key), text, length, NULL);
  }
  if (is(key, "sync_timeout_ms")) return set_duration(options, "sync_timeout", text);
  if (is(key, "retain_ms")) return set_duration(options, "retain", text);
  if (is(key, "label")) return rl_acquire_options_set_label(options, text, length);
  if (is(key, "format")) return rl_acquire_options_set_format(options, format_of(text));
  if (is(key, "permits") || is(key, "limit")) {
    return rl_acquire_options_set(options, key, strlen(key), text, length, NULL);
  }
  if (is(key, "owner")) return set_owner(options, kind, text, length);
  if (is(key, "names")) return RL_OK;
  return is(key, "id") || is(key, "kind") || is(key, "name") ? RL_OK : RL_E_INVALID;
}

/* "a,b:read": one to write, and one to read. */
static rl_status add_names(rl_names* names, const char* text, size_t length) {
  const char* const end = text + length;
  rl_status status = RL_OK;
  while (text < end && status == RL_OK) {
    const char* comma = memchr(text, ',', (size_t)(end - text));
    size_t size = (size_t)((comma == NULL ? end : comma) - text);
    const int reads = size > 5 && memcmp(text + size - 5, ":read", 5) == 0;
    status = rl_names_add(names, text, size - (reads ? 5 : 0), reads ? RL_MODE_READ : RL_MODE_WRITE,
                          NULL);
    text += size + 1;
  }
  return status;
}

static rl_status make_lock(struct call* call) {
  size_t length;
  const char* id = text_of(call, "id", &length);
  const char* kind = text_of(call, "kind", &length);
  const char* name = text_of(call, "name", &length);
  struct lock* lock = find_lock(id);
  rl_status status = RL_OK;
  snprintf(lock->id, sizeof lock->id, "%s", id);
  lock->name_length = length;
  memcpy(lock->name, name, length);
  lock->options = rl_acquire_options_new();
  lock->limit = number_of(call, "limit");
  lock->seen = -1;
  if (is(kind, "all")) {
    const char* names = text_of(call, "names", &length);
    lock->names = rl_names_new();
    status = add_names(lock->names, names, length);
    if (length == 0) status = RL_E_INVALID;
  }
  for (int i = 0; i < call->argument_count && status == RL_OK; ++i) {
    status = set_option(lock->options, kind, call->keys[i], call->values[i], call->lengths[i]);
  }
  return status;
}

static const char* const modes[] = {"NONE", "WRITE", "READ", "UPGRADE"};

static const struct field {
  int32_t number;
  char is_text;
  const char* name;
} fields[] = {{RL_FIELD_STATE, 0, "state"},         {RL_FIELD_REMAINING_MS, 0, "remaining_ms"},
              {RL_FIELD_FENCE, 0, "fence"},         {RL_FIELD_WAITING, 0, "waiting"},
              {RL_FIELD_SERVER_MS, 0, "server_ms"}, {RL_FIELD_SINCE_MS, 0, "since_ms"},
              {RL_FIELD_TYPE, 1, "type"},           {RL_FIELD_NAME, 1, "name"},
              {RL_FIELD_TOKEN, 1, "token"},         {RL_FIELD_HOLDER, 1, "who"},
              {RL_FIELD_LABEL, 1, "label"},         {RL_FIELD_HOLDING, 0, "holding"},
              {RL_FIELD_OWNER, 1, "owner"},         {RL_FIELD_USED, 0, "used"},
              {RL_FIELD_LIMIT, 0, "limit"},         {RL_FIELD_CAP, 0, "cap"},
              {RL_FIELD_PERMITS, 0, "permits"},     {RL_FIELD_CANDIDATE, 1, "candidate"}};

/* Every field of the first row of every part; what a part does not have is 0 or "". */
void show_info(struct call* call, rl_info* info) {
  static const char* const parts[] = {"", "", "holder_", "first_"};
  const size_t count = sizeof fields / sizeof fields[0];
  char text[TEXT_SIZE];
  int part;
  for (part = RL_PART_LOCK; part <= RL_PART_WAITER; ++part) {
    add(call, " %srows=%d", parts[part], rl_info_count(info, part));
    if (part != RL_PART_LOCK) {
      const int has_mode = rl_info_has(info, part, 0, RL_FIELD_MODE);
      add(call, " %smode=%s", parts[part],
          modes[has_mode ? rl_info_number(info, part, 0, RL_FIELD_MODE) : 0]);
    }
    for (size_t i = 0; i < count; ++i) {
      const int32_t field = fields[i].number;
      add(call, " %s%s=", parts[part], fields[i].name);
      if (!rl_info_has(info, part, 0, field)) {
        add(call, "%s", fields[i].is_text ? "" : "0");
      } else if (fields[i].is_text) {
        add_text(call, text, rl_info_text(info, part, 0, field, text, sizeof text));
      } else {
        add(call, "%lld", (long long)rl_info_number(info, part, 0, field));
      }
    }
  }
  add(call, " mark_rows=%d", rl_info_count(info, RL_PART_MARK));
  if (rl_info_count(info, RL_PART_MARK) > 0) {
    add(call, " mark_done=%lld mark_tries=%lld",
        (long long)rl_info_number(info, RL_PART_MARK, 0, RL_FIELD_DONE),
        (long long)rl_info_number(info, RL_PART_MARK, 0, RL_FIELD_TRIES));
  }
  rl_info_free(info);
}

void show_findings(struct call* call, rl_info* info) {
  static const char* const levels[] = {"unknown", "ok", "warn", "fail"};
  char text[TEXT_SIZE];
  for (int i = 0; i < rl_info_count(info, RL_PART_FINDING); ++i) {
    const int64_t level = rl_info_number(info, RL_PART_FINDING, i, RL_FIELD_LEVEL);
    rl_info_text(info, RL_PART_FINDING, i, RL_FIELD_ID, text, sizeof text);
    for (char* at = text; *at != '\0'; ++at) {
      if (*at == '-') *at = '_';
    }
    add(call, " %s=%s", text, levels[level]);
  }
  rl_info_free(info);
}

void show_stats(struct call* call, const struct lock* lock, rl_info* info) {
  const int64_t cap = rl_info_number(info, RL_PART_LOCK, 0, RL_FIELD_CAP);
  if (info != NULL) {
    add(call, " used=%lld limit=%lld cap=%lld waiting=%lld",
        (long long)rl_info_number(info, RL_PART_LOCK, 0, RL_FIELD_USED),
        (long long)(cap >= 0 && cap < lock->limit ? cap : lock->limit), (long long)cap,
        (long long)rl_info_number(info, RL_PART_LOCK, 0, RL_FIELD_WAITING));
  }
  rl_info_free(info);
}

static rl_status check_servers(struct call* call, rl_error* err) {
  show_findings(call, rl_client_check(client, number_of(call, "wait_ms"), err));
  return rl_error_status(err);
}

static rl_status inspect(struct call* call, const char* name, size_t name_length, rl_error* err) {
  show_info(call, rl_inspect(client, name, name_length, err));
  return rl_error_status(err);
}

/* How many, and the first and the last name: a listing has no order of its own. */
static rl_status list_locks(struct call* call, rl_error* err) {
  size_t pattern_length;
  const char* pattern = text_of(call, "pattern", &pattern_length);
  rl_list* list = rl_list_open(client, pattern, pattern_length, err);
  rl_status status = list == NULL ? rl_error_status(err) : RL_OK;
  char first[TEXT_SIZE] = "", last[TEXT_SIZE] = "", name[TEXT_SIZE];
  int count = 0;
  while (status == RL_OK && (status = rl_list_next(list, err)) == RL_OK) {
    rl_info_text(rl_list_info(list), RL_PART_LOCK, 0, RL_FIELD_NAME, name, sizeof name);
    if (count == 0 || strcmp(name, first) < 0) strcpy(first, name);
    if (count == 0 || strcmp(name, last) > 0) strcpy(last, name);
    count++;
  }
  rl_list_free(list);
  add(call, " rows=%d first=", count);
  add_text(call, first, strlen(first));
  add(call, " last=");
  add_text(call, last, strlen(last));
  return status == RL_END ? RL_OK : status;
}

static rl_status list_statuses(struct call* call) {
  rl_status status;
  for (status = -100; status <= 100; ++status) {
    if (is(rl_status_name(status), "RL_UNKNOWN")) continue;
    add(call, " %s=%d/%d", rl_status_name(status), status,
        rl_status_is(status, RL_MAYBE_APPLIED) * RL_MAYBE_APPLIED +
            rl_status_is(status, RL_RETRYABLE) * RL_RETRYABLE);
  }
  return RL_OK;
}

static void shut_down(void) { rl_client_shutdown(client); }

static rl_status use_client(struct call* call, const char* op, rl_error* err) {
  size_t name_length, token_length;
  const char* name = text_of(call, "name", &name_length);
  const char* token = text_of(call, "token", &token_length);
  if (is(op, "open")) return open_client(call, err);
  if (is(op, "lock")) return make_lock(call);
  if (is(op, "inspect")) return inspect(call, name, name_length, err);
  if (is(op, "list")) return list_locks(call, err);
  if (is(op, "statuses")) return list_statuses(call);
  if (is(op, "check")) return check_servers(call, err);
  if (is(op, "connect")) return rl_client_connect(client, number_of(call, "wait_ms"), err);
  if (is(op, "force_release")) {
    return rl_force_release(client, name, name_length, token, token_length, err);
  }
  if (is(op, "force_release_any")) return rl_force_release_any(client, name, name_length, err);
  if (is(op, "leader") || is(op, "participants")) return read_leader(call, err);
  if (is(op, "recall") || is(op, "resign")) return recall(call, err);
  if (is(op, "once_forget")) return rl_once_forget(client, name, name_length, err);
  if (!is(op, "shutdown")) return NO_SUCH_OPERATION;
  shut_down();
  return RL_OK;
}

static const char* const states[] = {"NONE", "HELD", "RELEASED", "LOST", "DETACHED"};
static const char* const losses[] = {"NONE",        "EXPIRED", "TAKEN_OVER", "FORCED", "MAX_HOLD",
                                     "NO_MAJORITY", "CLOSED",  "DEFECT",     "GONE"};

rl_status show_state(struct call* call, int32_t state) {
  if (state < 0) return state;
  add(call, " state=%s", states[state]);
  return RL_OK;
}

void show_lease(struct call* call, const rl_lease* lease, const char* token) {
  add(call, " state=%s remaining_ms=%lld fence=%lld mode=%s", states[rl_lease_state(lease)],
      (long long)rl_lease_remaining_ms(lease), (long long)rl_lease_fence(lease),
      modes[rl_lease_mode(lease)]);
  add(call, " lost=%s leads=%d", losses[rl_lease_lost_reason(lease)],
      rl_lease_check(lease, NULL) == RL_OK);
  if (token != NULL) add(call, " token=%s", token);
}

static rl_status detach(struct call* call, rl_lease* lease, rl_error* err) {
  char token[40];
  const rl_status status = rl_lease_detach(lease, token, sizeof token, err);
  if (status == RL_OK) show_lease(call, lease, token);
  return status;
}

static rl_status use_lease(struct call* call, rl_lease* lease, rl_error* err) {
  const char* op = call->op;
  if (is(op, "release") && is(defect, "ignore_release")) return RL_OK;
  /* C has no lock object: what never held has no lease, and there is nothing to call. */
  if (is(op, "release") && lease == NULL) return RL_E_NOT_HELD;
  if (is(op, "release")) return rl_release(lease, err);
  if (is(op, "extend")) return rl_extend(lease, number_of(call, "ttl_ms"), err);
  if (is(op, "check")) return rl_lease_check(lease, err);
  if (is(op, "wait_lost")) {
    return show_state(call, rl_lease_wait_lost(lease, number_of(call, "wait_ms")));
  }
  if (is(op, "upgrade")) return rl_rw_upgrade(lease, number_of(call, "wait_ms"), err);
  if (is(op, "downgrade")) return rl_rw_downgrade(lease, err);
  if (is(op, "detach")) return detach(call, lease, err);
  if (!is(op, "show")) return NO_SUCH_OPERATION;
  show_lease(call, lease, NULL);
  return RL_OK;
}

/* One of the attaches that are made at the same time. */
struct attach {
  const struct lock* lock;
  const char* token;
  size_t token_length;
  pthread_barrier_t* barrier;
  pthread_t thread;
  rl_lease* lease;
  rl_status status;
};

static void* attach(void* argument) {
  struct attach* one = (struct attach*)argument;
  rl_error* err = rl_error_new();
  pthread_barrier_wait(one->barrier);
  one->lease = rl_lease_attach(client, one->lock->name, one->lock->name_length, one->token,
                               one->token_length, 0, one->lock->options, err);
  one->status = rl_error_status(err);
  rl_error_free(err);
  return NULL;
}

/* Keeps the last lease that comes of it. */
static rl_status attach_all(struct call* call, const struct lock* lock, rl_lease** lease) {
  struct attach all[ATTACH_COUNT];
  pthread_barrier_t barrier;
  int granted = 0, refused = 0;
  pthread_barrier_init(&barrier, NULL, ATTACH_COUNT);
  for (int i = 0; i < ATTACH_COUNT; ++i) {
    all[i].lock = lock;
    all[i].token = text_of(call, "token", &all[i].token_length);
    all[i].barrier = &barrier;
    pthread_create(&all[i].thread, NULL, attach, &all[i]);
  }
  for (int i = 0; i < ATTACH_COUNT; ++i) {
    pthread_join(all[i].thread, NULL);
    refused += all[i].status == RL_E_NOT_HELD;
    if (all[i].lease == NULL) continue;
    granted += 1;
    rl_lease_free(*lease);
    *lease = all[i].lease;
  }
  pthread_barrier_destroy(&barrier);
  add(call, " granted=%d refused=%d", granted, refused);
  return RL_OK;
}

static rl_lease* acquire(const struct lock* lock, const char* op, int64_t wait_ms, rl_error* err) {
  const char* name = lock->name;
  const size_t length = lock->name_length;
  if (lock->names != NULL) {
    return rl_acquire_all(client, lock->names, wait_ms, lock->options, err);
  }
  if (is(op, "acquire")) return rl_acquire(client, name, length, wait_ms, lock->options, err);
  if (is(op, is(defect, "write_as_read") ? "" : "acquire_write") || is(defect, "read_as_write")) {
    return rl_rw_acquire_write(client, name, length, wait_ms, lock->options, err);
  }
  return rl_rw_acquire_read(client, name, length, wait_ms, lock->options, err);
}

rl_request* start_of(const struct lock* lock, const char* kind, int64_t wait_ms) {
  const char* name = lock->name;
  const size_t length = lock->name_length;
  if (lock->names != NULL && is(kind, "")) {
    return rl_acquire_all_start(client, lock->names, wait_ms, lock->options);
  }
  if (is(kind, "")) return rl_acquire_start(client, name, length, wait_ms, lock->options);
  if (is(kind, "upgrade")) return rl_rw_upgrade_start(lock->lease, wait_ms);
  if (is(defect, "write_as_read") || (is(kind, "read") && !is(defect, "read_as_write"))) {
    return rl_rw_acquire_read_start(client, name, length, wait_ms, lock->options);
  }
  return rl_rw_acquire_write_start(client, name, length, wait_ms, lock->options);
}

/* Also to start it: a candidate acquires. */
static rl_status campaign(struct call* call, struct lock* lock, rl_error* err, rl_lease** lease) {
  const int64_t wait_ms = number_of(call, "wait_ms");
  const char* side = side_of_candidate(call);
  const rl_status status = set_candidate(call, lock);
  if (status != RL_OK) return status;
  if (is(call->op, "start_campaign")) {
    rl_request_free(lock->request);
    lock->request = start_of(lock, side, wait_ms);
    return rl_request_status(lock->request);
  }
  *lease = acquire(lock, is(side, "read") ? "acquire_read" : "acquire", wait_ms, err);
  return rl_error_status(err);
}

static rl_status take(struct call* call, struct lock* lock, rl_error* err, rl_lease** lease) {
  const char *op = call->op, *kind = strchr(op, '_');
  const int64_t wait_ms = number_of(call, "wait_ms");
  rl_status status = NO_SUCH_OPERATION;
  size_t length;
  kind = kind == NULL ? "" : kind + 1;
  if (strncmp(op, "acquire", strlen("acquire")) == 0) {
    *lease = acquire(lock, op, wait_ms, err);
    return rl_error_status(err);
  }
  if (is(op, "attach")) {
    const char* token = text_of(call, "token", &length);
    *lease = rl_lease_attach(client, lock->name, lock->name_length, token, length,
                             number_of(call, "fence"), lock->options, err);
    return rl_error_status(err);
  }
  if (is(op, "attach_all")) return attach_all(call, lock, lease);
  if (strstr(op, "campaign") != NULL) return campaign(call, lock, err, lease);
  if (is(op, "observe")) return observe(call, lock, err);
  if (is(op, "recalled")) return recalled(call, lock);
  if (is(op, "once")) return run_once(call, lock, err);
  if (is(op, "flight")) return fly(call, lock, err);
  if (is(op, "stats")) {
    show_stats(call, lock, rl_semaphore_stats(client, lock->name, lock->name_length, err));
    return rl_error_status(err);
  }
  if (strncmp(op, "start", strlen("start")) == 0) {
    rl_request_free(lock->request);
    lock->request = start_of(lock, kind, wait_ms);
    return rl_request_status(lock->request);
  }
  if (is(op, "poll")) status = rl_request_wait(lock->request, wait_ms);
  if (is(op, "cancel")) status = rl_request_cancel(lock->request);
  *lease = rl_request_take_lease(lock->request);
  return status;
}

void keep_lease(struct call* call, struct lock* lock, rl_lease* lease) {
  char token[40];
  if (lease == NULL) return;
  forget_recalls(lock);
  rl_lease_free(lock->lease);
  lock->lease = lease;
  rl_lease_token(lease, token, sizeof token);
  add(call, " fence=%lld token=%s mode=%s hold_count=%lld", (long long)rl_lease_fence(lease), token,
      modes[rl_lease_mode(lease)], (long long)rl_lease_hold_count(lease));
  if (lock->names != NULL) {
    add(call, " second_fence=%lld", (long long)rl_lease_part_fence(lease, 1));
  }
  if (lock->limit > 0) add(call, " permits=%lld", (long long)rl_lease_permits(lease));
}

void* work(void* argument) {
  struct job* job = (struct job*)argument;
  struct call* call = &job->call;
  struct lock* lock = is(call->target, "-") ? NULL : find_lock(call->target);
  rl_lease* lease = NULL;
  job->status =
      lock ? use_lease(call, lock->lease, job->err) : use_client(call, call->op, job->err);
  if (lock != NULL && job->status == NO_SUCH_OPERATION) {
    job->status = take(call, lock, job->err, &lease);
  }
  keep_lease(call, lock, lease);
  return NULL;
}

void free_job(struct job* job) {
  if (job != NULL) rl_error_free(job->err);
  free(job);
}

/* As a careless table of statuses in another language would have it. */
static rl_status mistaken(rl_status status) {
  if (status == RL_STILL_HELD) return RL_OK;
  return status == RL_E_DEADLOCK || status == RL_E_ALREADY_HELD ? RL_BUSY : status;
}

void print_answer(struct job* job) {
  if (is(defect, "wrong_status")) job->status = mistaken(job->status);
  printf("%s%s\n", rl_status_name(job->status) + strlen("RL_"), job->call.answer);
  free_job(job);
}

/* Do it, or start it, or wait for what was started; and print. */
static void run(struct job* job) {
  const int number = job->call.job % JOB_COUNT;
  if (number != 0 && is(job->call.op, "wait") && jobs[number] != NULL) {
    free_job(job);
    job = jobs[number];
    jobs[number] = NULL;
    pthread_join(job->thread, NULL);
  } else if (number != 0) {
    jobs[number] = job;
    pthread_create(&job->thread, NULL, work, job);
    puts("STARTED");
    return;
  } else {
    work(job);
  }
  print_answer(job);
}

int main(int argc, char** argv) {
  const int is_queue = argc > 1 && is(argv[1], "queue");
  struct job* job = NULL;
  if (getenv("REDLATCH_RUNNER_DEFECT") != NULL) defect = getenv("REDLATCH_RUNNER_DEFECT");
  setvbuf(stdout, NULL, _IOLBF, 0);
  while ((job = (struct job*)calloc(1, sizeof *job)) != NULL &&
         fgets(job->call.line, LINE_SIZE, stdin) != NULL) {
    job->err = rl_error_new();
    parse_call(&job->call, defect);
    if (is_queue) {
      run_in_loop(job);
    } else {
      run(job);
    }
  }
  free_job(job);
  shut_down(); /* Ends the waits of the jobs. */
  if (is_queue) end_loop();
  for (int i = 1; i < JOB_COUNT && !is_queue; ++i) {
    if (jobs[i] != NULL) pthread_join(jobs[i]->thread, NULL);
    free_job(jobs[i]);
  }
  for (int i = 0; i < LOCK_COUNT; ++i) {
    forget_recalls(&locks[i]);
    rl_request_free(locks[i].request);
    rl_lease_free(locks[i].lease);
    rl_acquire_options_free(locks[i].options);
  }
  rl_client_close(client);
  return 0;
}
