/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Goal: the header stands alone and is plain C. Method: nothing is included before or after it, and
 * the build compiles this file as C90, C99 and C++17 with pedantic warnings as errors.
 */
#include "redlatch/redlatch.h"
/* Twice, because a program may. */
#include "redlatch/redlatch.h"

/* Used, so that a header that declares nothing does not pass. */
rl_status header_is_usable(rl_client *client, rl_error *err);

rl_status header_is_usable(rl_client *client, rl_error *err) {
  rl_lease *lease = rl_acquire(client, "x", 1, RL_PROVISIONAL_MS, NULL, err);
  return lease == NULL ? rl_error_status(err) : rl_release(lease, err);
}
