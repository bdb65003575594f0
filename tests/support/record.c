/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * The recorder of record.h. Each record is one write(2) to a file of this process alone: SIGKILL
 * leaves whole lines, and of a call that was under way at least that it was made.
 */
#define REDLATCH_TESTS_SUPPORT_RECORD_C
#include "record.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { NAME_SIZE = 3 * RL_MAX_NAME_BYTES + 1, RECORD_SIZE = 8192, WAITER_COUNT = 128 };
enum { TOKEN_SIZE = 64 };

/* The settings of options, and the call of a request, which no function of the library returns. A
 * lease must not be freed before the result of the request that changes it is known. */
struct note {
  struct note *next;
  const void *key;
  int64_t ttl_ms;
  int burst, renew, format;
  char *owner; /* encoded */
  long id;     /* of the request's call */
  int is_acquire, is_finished;
  const rl_lease *changed; /* by a request that is not an acquire */
};

static const struct note plain = {.ttl_ms = RL_DEFAULT_TTL_MS,
                                  .burst = RL_DEFAULT_LOCAL_HANDOFFS,
                                  .renew = 1,
                                  .format = RL_FORMAT_STRING};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards the three below */
static struct note *notes;
static long last_id;
static int file = -1;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static int64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- records ---- */

static int is_on(void) {
  const char *folder = getenv("REDLATCH_HISTORY");
  return folder != NULL && *folder != '\0';
}

static void lock(void) { pthread_mutex_lock(&mutex); }
static void unlock(void) { pthread_mutex_unlock(&mutex); }

/* A child of fork() writes a file of its own, and no more about the parent's requests. */
static void begin_child(void) {
  if (file >= 0) close(file);
  file = -1;
  notes = NULL;
  unlock();
}

static void watch_forks(void) { pthread_atfork(lock, unlock, begin_child); }

static void open_file(void) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%d.log", getenv("REDLATCH_HISTORY"), (int)getpid());
  file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0) {
    perror(path);
    _exit(98);
  }
}

__attribute__((format(printf, 1, 2))) static void put(const char *format, ...) {
  char record[RECORD_SIZE];
  va_list values;
  va_start(values, format);
  const int size = vsnprintf(record, sizeof record, format, values);
  va_end(values);
  pthread_once(&once, watch_forks);
  lock();
  if (file < 0) open_file();
  if (size >= RECORD_SIZE || write(file, record, (size_t)size) != size) _exit(98);
  unlock();
}

static long new_id(void) {
  lock();
  const long id = ++last_id;
  unlock();
  return id;
}

static const char *encode(char out[NAME_SIZE], const char *name, size_t size) {
  char *end = out;
  *end = '\0';
  for (size_t i = 0; name != NULL && i < size && i < RL_MAX_NAME_BYTES; i++) {
    const unsigned char byte = (unsigned char)name[i];
    const int is_plain = byte > ' ' && byte < 0x7f && byte != '%';
    end += sprintf(end, is_plain ? "%c" : "%%%02x", byte);
  }
  return out;
}

struct lease_text {
  char text[TOKEN_SIZE + 80];
};

/* The token of a lease, and until when it is held by the local clock; 0 if it has ended. */
static struct lease_text describe(const rl_lease *lease) {
  struct lease_text out;
  char token[TOKEN_SIZE] = "";
  const int64_t now = now_ns();
  const int64_t remaining_ms = rl_lease_remaining_ms(lease);
  rl_lease_token(lease, token, sizeof token);
  snprintf(out.text, sizeof out.text, "token=%s fence=%lld until=%lld", token,
           (long long)rl_lease_fence(lease),
           remaining_ms > 0 ? (long long)(now + remaining_ms * 1000000) : 0);
  return out;
}

static void put_look(const rl_lease *lease) {
  const struct lease_text text = describe(lease);
  put("look %d %lld %s\n", (int)getpid(), (long long)now_ns(), text.text);
}

/* `what` is the operation and its arguments. */
__attribute__((format(printf, 1, 2))) static long put_call(const char *what, ...) {
  char text[RECORD_SIZE / 2];
  va_list values;
  const long id = new_id();
  va_start(values, what);
  vsnprintf(text, sizeof text, what, values);
  va_end(values);
  put("call %d.%ld %lld %s caller=%ld\n", (int)getpid(), id, (long long)now_ns(), text,
      (long)syscall(SYS_gettid));
  return id;
}

static void put_return(long id, rl_status status) {
  const int64_t now = now_ns();
  const char *outcome = "error";
  if (status == RL_OK) outcome = "ok";
  if (status == RL_BUSY) outcome = "busy";
  if (status == RL_TIMEOUT) outcome = "timeout";
  if (status == RL_CANCELLED) outcome = "cancelled";
  if (status == RL_STILL_HELD) outcome = "still_held";
  if (status == RL_E_LOST) outcome = "lost";
  if (status == RL_E_DEADLOCK) outcome = "deadlock";
  if (status == RL_E_ALREADY_HELD) outcome = "already_held";
  /* Nothing was sent: a child cannot use the parent's leases. */
  if (status == RL_E_NOT_HELD || status == RL_E_FORKED) outcome = "not_held";
  if (status == RL_E_OUTCOME_UNKNOWN) outcome = "unknown";
  put("return %d.%ld %lld %s\n", (int)getpid(), id, (long long)now, outcome);
}

static void put_granted(long id, const rl_lease *lease) {
  const int64_t now = now_ns();
  const struct lease_text text = describe(lease);
  put("return %d.%ld %lld ok %s mode=%s holds=%lld\n", (int)getpid(), id, (long long)now, text.text,
      rl_lease_mode(lease) == RL_MODE_READ ? "read" : "write",
      (long long)rl_lease_hold_count(lease));
}

static rl_lease *put_taken(long id, rl_lease *lease, const rl_error *err) {
  if (lease != NULL) {
    put_granted(id, lease);
  } else {
    put_return(id, rl_error_status(err));
  }
  return lease;
}

/* The state of a lease, as a record. */
static rl_status put_changed(long id, const rl_lease *lease, rl_status status) {
  if (status == RL_OK) {
    put_granted(id, lease);
  } else {
    put_return(id, status);
  }
  return status;
}

/* ---- notes ---- */

/* Under the mutex. */
static struct note **find(const void *key) {
  struct note **place = &notes;
  while (*place != NULL && (*place)->key != key) place = &(*place)->next;
  return place;
}

static struct note *note_of(const void *key) {
  lock();
  struct note **place = find(key);
  if (*place == NULL) {
    *place = calloc(1, sizeof **place);
    if (*place == NULL) _exit(98);
    **place = plain;
    (*place)->key = key;
  }
  struct note *note = *place;
  unlock();
  return note;
}

static void forget(const void *key) {
  lock();
  struct note **place = find(key);
  struct note *note = *place;
  if (note != NULL) *place = note->next;
  unlock();
  if (note != NULL) free(note->owner);
  free(note);
}

rl_status recorded_set_ttl_ms(rl_acquire_options *options, int64_t ttl_ms) {
  const rl_status status = rl_acquire_options_set_ttl_ms(options, ttl_ms);
  if (status == RL_OK) note_of(options)->ttl_ms = ttl_ms;
  return status;
}

rl_status recorded_set_renew(rl_acquire_options *options, int32_t is_renewed) {
  const rl_status status = rl_acquire_options_set_renew(options, is_renewed);
  if (status == RL_OK) note_of(options)->renew = is_renewed;
  return status;
}

rl_status recorded_set_max_local_handoffs(rl_acquire_options *options, int32_t grant_count) {
  const rl_status status = rl_acquire_options_set_max_local_handoffs(options, grant_count);
  if (status == RL_OK) note_of(options)->burst = grant_count;
  return status;
}

static void note_owner(const rl_acquire_options *options, const char *owner, size_t owner_len) {
  char encoded[NAME_SIZE];
  struct note *note = note_of(options);
  free(note->owner);
  note->owner = strdup(encode(encoded, owner, owner_len));
  if (note->owner == NULL) _exit(98);
}

rl_status recorded_set_format(rl_acquire_options *options, int32_t format) {
  const rl_status status = rl_acquire_options_set_format(options, format);
  if (status == RL_OK) note_of(options)->format = format;
  return status;
}

rl_status recorded_set_reentrant(rl_acquire_options *options, int32_t is_on) {
  const rl_status status = rl_acquire_options_set_reentrant(options, is_on);
  if (status == RL_OK && is_on) note_of(options)->format = RL_FORMAT_HASH;
  return status;
}

rl_status recorded_set_owner(rl_acquire_options *options, const char *owner, size_t owner_len) {
  const rl_status status = rl_acquire_options_set_owner(options, owner, owner_len);
  if (status == RL_OK) note_owner(options, owner, owner_len);
  return status;
}

void recorded_options_free(rl_acquire_options *options) {
  forget(options);
  rl_acquire_options_free(options);
}

/* ---- calls that wait ---- */

static const char *mode_of(const rl_client *client) {
  static const char option[] = "restart_guard"; /* which only a quorum has */
  return rl_client_option(client, option, sizeof option - 1, NULL, 0) > 0 ? "mode=write quorum=1"
                                                                          : "mode=write";
}

/* `what`: more keys of the record, the mode among them. */
static long call_acquire(const char *what, const void *client, const char *name, size_t name_len,
                         int64_t wait_ms, const rl_acquire_options *options) {
  char encoded[NAME_SIZE];
  const struct note *said = options != NULL ? note_of(options) : &plain;
  const int is_reentrant = said->owner != NULL && said->format == RL_FORMAT_HASH;
  return put_call(
      "acquire client=%p name=%s %s wait_ms=%lld ttl_ms=%lld burst=%d renew=%d"
      " owner=%s reentrant=%d",
      client, encode(encoded, name, name_len), what, (long long)wait_ms, (long long)said->ttl_ms,
      said->burst, said->renew, said->owner != NULL ? said->owner : "", is_reentrant);
}

static long call_with(const char *op, const rl_lease *lease, int64_t ttl_ms) {
  const struct lease_text text = describe(lease);
  return put_call("%s %s ttl_ms=%lld", op, text.text, (long long)ttl_ms);
}

rl_lease *recorded_acquire(rl_client *client, const char *name, size_t name_len, int64_t wait_ms,
                           const rl_acquire_options *options, rl_error *err) {
  if (!is_on()) return rl_acquire(client, name, name_len, wait_ms, options, err);
  const long id = call_acquire(mode_of(client), client, name, name_len, wait_ms, options);
  return put_taken(id, rl_acquire(client, name, name_len, wait_ms, options, err), err);
}

rl_lease *recorded_acquire_read(rl_client *client, const char *name, size_t name_len,
                                int64_t wait_ms, const rl_acquire_options *options, rl_error *err) {
  if (!is_on()) return rl_rw_acquire_read(client, name, name_len, wait_ms, options, err);
  const long id = call_acquire("mode=read", client, name, name_len, wait_ms, options);
  return put_taken(id, rl_rw_acquire_read(client, name, name_len, wait_ms, options, err), err);
}

rl_lease *recorded_acquire_write(rl_client *client, const char *name, size_t name_len,
                                 int64_t wait_ms, const rl_acquire_options *options,
                                 rl_error *err) {
  if (!is_on()) return rl_rw_acquire_write(client, name, name_len, wait_ms, options, err);
  const long id = call_acquire("mode=write", client, name, name_len, wait_ms, options);
  return put_taken(id, rl_rw_acquire_write(client, name, name_len, wait_ms, options, err), err);
}

rl_lease *recorded_redlock_acquire(rl_client *client, const char *name, size_t name_len,
                                   int64_t wait_ms, const rl_acquire_options *options,
                                   rl_error *err) {
  return recorded_acquire(client, name, name_len, wait_ms, options, err);
}

rl_lease *recorded_attach(rl_client *client, const char *name, size_t name_len, const char *token,
                          size_t token_len, int64_t fence, const rl_acquire_options *options,
                          rl_error *err) {
  char encoded[NAME_SIZE];
  char shown[NAME_SIZE];
  if (!is_on()) {
    return rl_lease_attach(client, name, name_len, token, token_len, fence, options, err);
  }
  const struct note *said = options != NULL ? note_of(options) : &plain;
  const long id = put_call("attach client=%p name=%s ttl_ms=%lld token=%s", (void *)client,
                           encode(encoded, name, name_len), (long long)said->ttl_ms,
                           encode(shown, token, token_len < TOKEN_SIZE ? token_len : 0));
  return put_taken(
      id, rl_lease_attach(client, name, name_len, token, token_len, fence, options, err), err);
}

rl_status recorded_release(rl_lease *lease, rl_error *err) {
  if (!is_on() || lease == NULL) return rl_release(lease, err);
  const long id = call_with("release", lease, 0);
  const rl_status status = rl_release(lease, err);
  put_return(id, status);
  return status;
}

rl_status recorded_extend(rl_lease *lease, int64_t ttl_ms, rl_error *err) {
  if (!is_on() || lease == NULL) return rl_extend(lease, ttl_ms, err);
  const long id = call_with("extend", lease, ttl_ms);
  return put_changed(id, lease, rl_extend(lease, ttl_ms, err));
}

static long call_upgrade(const rl_lease *lease, int64_t wait_ms) {
  const struct lease_text text = describe(lease);
  return put_call("upgrade %s wait_ms=%lld", text.text, (long long)wait_ms);
}

rl_status recorded_upgrade(rl_lease *lease, int64_t wait_ms, rl_error *err) {
  if (!is_on() || lease == NULL) return rl_rw_upgrade(lease, wait_ms, err);
  const long id = call_upgrade(lease, wait_ms);
  return put_changed(id, lease, rl_rw_upgrade(lease, wait_ms, err));
}

rl_status recorded_downgrade(rl_lease *lease, rl_error *err) {
  if (!is_on() || lease == NULL) return rl_rw_downgrade(lease, err);
  const long id = call_with("downgrade", lease, 0);
  return put_changed(id, lease, rl_rw_downgrade(lease, err));
}

/* If the lease is held, this is a release in the background, without a reply. */
void recorded_lease_free(rl_lease *lease) {
  const int is_release = is_on() && lease != NULL && rl_lease_state(lease) == RL_LEASE_HELD;
  if (is_release) call_with("release", lease, 0);
  rl_lease_free(lease);
}

rl_status recorded_detach(rl_lease *lease, char *buffer, size_t buffer_size, rl_error *err) {
  if (!is_on() || lease == NULL) return rl_lease_detach(lease, buffer, buffer_size, err);
  const long id = call_with("detach", lease, 0);
  const rl_status status = rl_lease_detach(lease, buffer, buffer_size, err);
  put_return(id, status);
  return status;
}

int32_t recorded_state(const rl_lease *lease) {
  if (is_on() && lease != NULL) put_look(lease);
  return rl_lease_state(lease);
}

int32_t recorded_wait_lost(rl_lease *lease, int64_t wait_ms) {
  const int32_t state = rl_lease_wait_lost(lease, wait_ms);
  if (is_on() && lease != NULL) put_look(lease);
  return state;
}

/* ---- requests ---- */

/* `changed`: the lease of the request, unless the request makes a new one. */
static rl_request *start(rl_request *request, long id, int is_acquire, const rl_lease *changed) {
  if (request == NULL) {
    put_return(id, RL_E_NO_MEMORY);
    return NULL;
  }
  struct note *note = note_of(request);
  note->id = id;
  note->is_acquire = is_acquire;
  note->changed = changed;
  return request;
}

rl_request *recorded_acquire_start(rl_client *client, const char *name, size_t name_len,
                                   int64_t wait_ms, const rl_acquire_options *options) {
  if (!is_on()) return rl_acquire_start(client, name, name_len, wait_ms, options);
  const long id = call_acquire(mode_of(client), client, name, name_len, wait_ms, options);
  return start(rl_acquire_start(client, name, name_len, wait_ms, options), id, 1, NULL);
}

rl_request *recorded_acquire_read_start(rl_client *client, const char *name, size_t name_len,
                                        int64_t wait_ms, const rl_acquire_options *options) {
  if (!is_on()) return rl_rw_acquire_read_start(client, name, name_len, wait_ms, options);
  const long id = call_acquire("mode=read", client, name, name_len, wait_ms, options);
  return start(rl_rw_acquire_read_start(client, name, name_len, wait_ms, options), id, 1, NULL);
}

rl_request *recorded_acquire_write_start(rl_client *client, const char *name, size_t name_len,
                                         int64_t wait_ms, const rl_acquire_options *options) {
  if (!is_on()) return rl_rw_acquire_write_start(client, name, name_len, wait_ms, options);
  const long id = call_acquire("mode=write", client, name, name_len, wait_ms, options);
  return start(rl_rw_acquire_write_start(client, name, name_len, wait_ms, options), id, 1, NULL);
}

rl_request *recorded_redlock_acquire_start(rl_client *client, const char *name, size_t name_len,
                                           int64_t wait_ms, const rl_acquire_options *options) {
  return recorded_acquire_start(client, name, name_len, wait_ms, options);
}

rl_request *recorded_release_start(rl_lease *lease) {
  if (!is_on() || lease == NULL) return rl_release_start(lease);
  const long id = call_with("release", lease, 0);
  return start(rl_release_start(lease), id, 0, NULL);
}

rl_request *recorded_extend_start(rl_lease *lease, int64_t ttl_ms) {
  if (!is_on() || lease == NULL) return rl_extend_start(lease, ttl_ms);
  const long id = call_with("extend", lease, ttl_ms);
  return start(rl_extend_start(lease, ttl_ms), id, 0, lease);
}

rl_request *recorded_upgrade_start(rl_lease *lease, int64_t wait_ms) {
  if (!is_on() || lease == NULL) return rl_rw_upgrade_start(lease, wait_ms);
  const long id = call_upgrade(lease, wait_ms);
  return start(rl_rw_upgrade_start(lease, wait_ms), id, 0, lease);
}

rl_request *recorded_downgrade_start(rl_lease *lease) {
  if (!is_on() || lease == NULL) return rl_rw_downgrade_start(lease);
  const long id = call_with("downgrade", lease, 0);
  return start(rl_rw_downgrade_start(lease), id, 0, lease);
}

rl_request *recorded_detach_start(rl_lease *lease) {
  if (!is_on() || lease == NULL) return rl_lease_detach_start(lease);
  const long id = call_with("detach", lease, 0);
  return start(rl_lease_detach_start(lease), id, 0, NULL);
}

/* The number of its call, for the first thread that learns how it ended; 0 for all others. */
static long end_call(const rl_request *request) {
  struct note *note = note_of(request);
  lock();
  const long id = note->is_finished ? 0 : note->id;
  note->is_finished = 1;
  unlock();
  return id;
}

/* A successful acquire returns when its lease is taken: no caller relies on it before. */
static void finish(const rl_request *request, rl_status status) {
  if (note_of(request)->is_acquire && status == RL_OK) return;
  const long id = end_call(request);
  const rl_lease *changed = note_of(request)->changed;
  if (id != 0 && changed != NULL) {
    put_changed(id, changed, status);
  } else if (id != 0) {
    put_return(id, status);
  }
}

rl_status recorded_wait(rl_request *request, int64_t wait_ms) {
  const rl_status status = rl_request_wait(request, wait_ms);
  const int is_final = status != RL_PENDING && status != RL_INTERRUPTED && status != RL_E_FORKED;
  if (is_on() && request != NULL && is_final) finish(request, status);
  return status;
}

rl_status recorded_cancel(rl_request *request) {
  const rl_status status = rl_request_cancel(request);
  /* A release or an extension continues without its request. */
  const int is_final = status == RL_CANCELLED && is_on() && note_of(request)->is_acquire;
  if (is_final) finish(request, status);
  return status;
}

rl_lease *recorded_take_lease(rl_request *request) {
  rl_lease *lease = rl_request_take_lease(request);
  if (is_on() && lease != NULL) {
    const long id = end_call(request);
    if (id != 0) put_granted(id, lease);
  }
  return lease;
}

void recorded_request_free(rl_request *request) {
  if (is_on() && request != NULL) {
    finish(request, note_of(request)->is_acquire ? RL_CANCELLED : RL_E_OUTCOME_UNKNOWN);
    forget(request);
  }
  rl_request_free(request);
}

/* ---- the rest ---- */

rl_status recorded_force_release(rl_client *client, const char *name, size_t name_len,
                                 const char *token, size_t token_len, rl_error *err) {
  char encoded[NAME_SIZE];
  if (!is_on()) return rl_force_release(client, name, name_len, token, token_len, err);
  const long id = put_call("force name=%s", encode(encoded, name, name_len));
  const rl_status status = rl_force_release(client, name, name_len, token, token_len, err);
  put_return(id, status);
  return status;
}

rl_status recorded_force_release_any(rl_client *client, const char *name, size_t name_len,
                                     rl_error *err) {
  char encoded[NAME_SIZE];
  if (!is_on()) return rl_force_release_any(client, name, name_len, err);
  const long id = put_call("force name=%s", encode(encoded, name, name_len));
  const rl_status status = rl_force_release_any(client, name, name_len, err);
  put_return(id, status);
  return status;
}

/* The tokens in the server's queue, in their order. */
rl_info *recorded_inspect(rl_client *client, const char *name, size_t name_len, rl_error *err) {
  char encoded[NAME_SIZE], tokens[WAITER_COUNT * (TOKEN_SIZE / 2 + 1) + 1] = "", token[TOKEN_SIZE];
  rl_info *info = rl_inspect(client, name, name_len, err);
  const int32_t count = rl_info_count(info, RL_PART_WAITER);
  if (!is_on() || count == 0) return info;
  for (int32_t i = 0; i < count && i < WAITER_COUNT; i++) {
    rl_info_text(info, RL_PART_WAITER, i, RL_FIELD_TOKEN, token, TOKEN_SIZE / 2 + 1);
    strcat(strcat(tokens, *tokens == '\0' ? "" : ","), token);
  }
  put("queue %d %lld name=%s tokens=%s\n", (int)getpid(), (long long)now_ns(),
      encode(encoded, name, name_len), tokens);
  return info;
}

void recorded_shutdown(rl_client *client) {
  if (is_on() && client != NULL) put_call("close client=%p", (void *)client);
  rl_client_shutdown(client);
}

void recorded_close(rl_client *client) {
  if (is_on() && client != NULL) put_call("close client=%p", (void *)client);
  rl_client_close(client);
}

void recorded_redlock_close(rl_client *client) { recorded_close(client); }
