/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Real servers for a test program, each on a unix socket in a directory of its own, and raw
 * commands to them that do not go through redlatch. Main thread only.
 */
#ifndef REDLATCH_TESTS_SERVER_H
#define REDLATCH_TESTS_SERVER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { SERVER_COUNT = 5 };

/* What follows is about server `number` from now on; before, about number 0. */
void server_select(size_t number);
/* Start the server at the first call; it ends with the program, however that ends. @return its URL.
   The variable REDLATCH_REDIS_SERVER names another binary than redis-server. */
const char* server_url(void);
pid_t server_pid(void);
/* End it by SIGKILL; server_url() starts another one, empty, at the same address. */
void server_kill(void);

/* Send one command of words, the last one NULL. The reply goes to `reply` as text: a bulk or simple
   string as it is, a number in digits, "(nil)", "(array N)", an error with its "-". @return 0 when
   the server cannot be reached. */
int server_command(char* reply, size_t reply_size, const char* word, ...);
/* For commands that answer with a number; -1000 when they do not. */
int64_t server_number(const char* word, ...);

#ifdef __cplusplus
}
#endif

#endif
