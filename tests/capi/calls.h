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

/* A client of the present server, without options. */
rl_client* server_client(void);
/* Release, which must be well, and free. */
void give_back(rl_lease* lease);
int is_readable(const rl_queue* queue);
/* How many waiters the server has in the queue of the lock. */
int64_t waiting_count(rl_client* client, const char* name);
/* Take all lines of the log. */
void empty_log(rl_client* client);

#endif
