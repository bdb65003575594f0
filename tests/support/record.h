/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Records the library calls of C programs that tests start. A program includes this header in place
 * of redlatch.h, is linked with record.c, and calls the library as usual. A C++ program includes it
 * before redlatch.hpp. Records are written only if REDLATCH_HISTORY names a folder.
 * tests/history/README.md defines them; the program beside it checks them.
 */
#ifndef REDLATCH_TESTS_SUPPORT_RECORD_H
#define REDLATCH_TESTS_SUPPORT_RECORD_H

#include "redlatch/redlatch.h"

#ifdef __cplusplus
extern "C" {
#endif

rl_status recorded_set_ttl_ms(rl_acquire_options *options, int64_t ttl_ms);
rl_status recorded_set_renew(rl_acquire_options *options, int32_t is_on);
rl_status recorded_set_max_local_handoffs(rl_acquire_options *options, int32_t grant_count);
rl_status recorded_set_format(rl_acquire_options *options, int32_t format);
rl_status recorded_set_reentrant(rl_acquire_options *options, int32_t is_on);
rl_status recorded_set_owner(rl_acquire_options *options, const char *owner, size_t owner_len);
void recorded_options_free(rl_acquire_options *options);
rl_lease *recorded_acquire(rl_client *client, const char *name, size_t name_len, int64_t wait_ms,
                           const rl_acquire_options *options, rl_error *err);
rl_lease *recorded_acquire_read(rl_client *client, const char *name, size_t name_len,
                                int64_t wait_ms, const rl_acquire_options *options, rl_error *err);
rl_lease *recorded_acquire_write(rl_client *client, const char *name, size_t name_len,
                                 int64_t wait_ms, const rl_acquire_options *options, rl_error *err);
rl_lease *recorded_redlock_acquire(rl_client *client, const char *name, size_t name_len,
                                   int64_t wait_ms, const rl_acquire_options *options,
                                   rl_error *err);
rl_lease *recorded_attach(rl_client *client, const char *name, size_t name_len, const char *token,
                          size_t token_len, int64_t fence, const rl_acquire_options *options,
                          rl_error *err);
rl_status recorded_release(rl_lease *lease, rl_error *err);
rl_status recorded_extend(rl_lease *lease, int64_t ttl_ms, rl_error *err);
rl_status recorded_upgrade(rl_lease *lease, int64_t wait_ms, rl_error *err);
rl_status recorded_downgrade(rl_lease *lease, rl_error *err);
void recorded_lease_free(rl_lease *lease);
rl_status recorded_detach(rl_lease *lease, char *buffer, size_t buffer_size, rl_error *err);
int32_t recorded_state(const rl_lease *lease);
int32_t recorded_wait_lost(rl_lease *lease, int64_t wait_ms);
rl_request *recorded_acquire_start(rl_client *client, const char *name, size_t name_len,
                                   int64_t wait_ms, const rl_acquire_options *options);
rl_request *recorded_acquire_read_start(rl_client *client, const char *name, size_t name_len,
                                        int64_t wait_ms, const rl_acquire_options *options);
rl_request *recorded_acquire_write_start(rl_client *client, const char *name, size_t name_len,
                                         int64_t wait_ms, const rl_acquire_options *options);
rl_request *recorded_redlock_acquire_start(rl_client *client, const char *name, size_t name_len,
                                           int64_t wait_ms, const rl_acquire_options *options);
rl_request *recorded_release_start(rl_lease *lease);
rl_request *recorded_extend_start(rl_lease *lease, int64_t ttl_ms);
rl_request *recorded_upgrade_start(rl_lease *lease, int64_t wait_ms);
rl_request *recorded_downgrade_start(rl_lease *lease);
rl_request *recorded_detach_start(rl_lease *lease);
rl_status recorded_wait(rl_request *request, int64_t wait_ms);
rl_status recorded_cancel(rl_request *request);
rl_lease *recorded_take_lease(rl_request *request);
void recorded_request_free(rl_request *request);
rl_status recorded_force_release(rl_client *client, const char *name, size_t name_len,
                                 const char *token, size_t token_len, rl_error *err);
rl_status recorded_force_release_any(rl_client *client, const char *name, size_t name_len,
                                     rl_error *err);
rl_info *recorded_inspect(rl_client *client, const char *name, size_t name_len, rl_error *err);
void recorded_shutdown(rl_client *client);
void recorded_close(rl_client *client);
void recorded_redlock_close(rl_client *client);

#ifdef __cplusplus
}
#endif

/* Macros without parameters, because redlatch.hpp also passes functions as arguments. record.c
 * itself calls the library. */
#ifndef REDLATCH_TESTS_SUPPORT_RECORD_C
#define rl_acquire_options_set_ttl_ms recorded_set_ttl_ms
#define rl_acquire_options_set_renew recorded_set_renew
#define rl_acquire_options_set_max_local_handoffs recorded_set_max_local_handoffs
#define rl_acquire_options_set_format recorded_set_format
#define rl_acquire_options_set_reentrant recorded_set_reentrant
#define rl_acquire_options_set_owner recorded_set_owner
#define rl_acquire_options_free recorded_options_free
#define rl_acquire recorded_acquire
#define rl_rw_acquire_read recorded_acquire_read
#define rl_rw_acquire_write recorded_acquire_write
#define rl_redlock_acquire recorded_redlock_acquire
#define rl_lease_attach recorded_attach
#define rl_release recorded_release
#define rl_extend recorded_extend
#define rl_rw_upgrade recorded_upgrade
#define rl_rw_downgrade recorded_downgrade
#define rl_lease_free recorded_lease_free
#define rl_lease_detach recorded_detach
#define rl_lease_state recorded_state
#define rl_lease_wait_lost recorded_wait_lost
#define rl_acquire_start recorded_acquire_start
#define rl_rw_acquire_read_start recorded_acquire_read_start
#define rl_rw_acquire_write_start recorded_acquire_write_start
#define rl_redlock_acquire_start recorded_redlock_acquire_start
#define rl_release_start recorded_release_start
#define rl_extend_start recorded_extend_start
#define rl_rw_upgrade_start recorded_upgrade_start
#define rl_rw_downgrade_start recorded_downgrade_start
#define rl_lease_detach_start recorded_detach_start
#define rl_request_wait recorded_wait
#define rl_request_cancel recorded_cancel
#define rl_request_take_lease recorded_take_lease
#define rl_request_free recorded_request_free
#define rl_force_release recorded_force_release
#define rl_force_release_any recorded_force_release_any
#define rl_inspect recorded_inspect
#define rl_client_shutdown recorded_shutdown
#define rl_client_close recorded_close
#define rl_redlock_close recorded_redlock_close
#endif

#endif
