/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Calls of the library that many tests make.
 */
#ifndef REDLATCH_TESTS_CALLS_H
#define REDLATCH_TESTS_CALLS_H

#include "redlatch/redlatch.h"

/* A name and its length. */
#define TEXT(x) (x), (sizeof(x) - 1)

/* A client of the present server, without options, or with those in a URL: "protocol=2". */
rl_client* server_client(void);
rl_client* client_with(const char* options);
/* Release, which must be well, and free. */
void give_back(rl_lease* lease);
int is_readable(const rl_queue* queue);
/* How many waiters the server has in the queue of the lock. */
int64_t waiting_count(rl_client* client, const char* name);
/* Take all lines of the log. */
void empty_log(rl_client* client);
/* The server has no key `name`. */
int is_free(const char* name);
/* A detached lease: wait until it can be attached, and give it back. What was on the wire counts
   once the server has read it. */
void check_attachable(rl_client* client, const char* name, const char* token);

/* The user "app" has `password` from now on, and no other. */
void set_password(const char* password);
/* End the connections of "app". */
void kill_connections(void);

/* Of this process. One that was joined may be seen for a moment. */
int thread_count(void);
int fd_count(void);

#endif
