/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * For programs in C that tests start: what they call of the library is written down. A program
 * includes this in place of redlatch.h, is linked with record.c, and calls the library as ever.
 * Nothing is written unless REDLATCH_HISTORY names a folder. tests/history/README.md says what the
 * records mean, and has the program that judges them.
 */
#ifndef REDLATCH_TESTS_SUPPORT_RECORD_H
#define REDLATCH_TESTS_SUPPORT_RECORD_H

#include "redlatch/redlatch.h"

rl_status recorded_set_lease_ms(rl_acquire_options *options, int64_t lease_ms);
rl_status recorded_set_renew(rl_acquire_options *options, int32_t is_on);
rl_status recorded_set_local_burst(rl_acquire_options *options, int32_t grant_count);
rl_status recorded_set_format(rl_acquire_options *options, int32_t format);
rl_status recorded_set_reentrant(rl_acquire_options *options, const char *owner, size_t owner_len);
rl_status recorded_set_owner(rl_acquire_options *options, const char *owner, size_t owner_len);
void recorded_options_free(rl_acquire_options *options);
rl_lease *recorded_acquire(rl_client *client, const char *name, size_t name_len, int64_t wait_ms,
                           const rl_acquire_options *options, rl_error *err);
rl_lease *recorded_acquire_read(rl_client *client, const char *name, size_t name_len,
                                int64_t wait_ms, const rl_acquire_options *options, rl_error *err);
rl_lease *recorded_acquire_write(rl_client *client, const char *name, size_t name_len,
                                 int64_t wait_ms, const rl_acquire_options *options, rl_error *err);
rl_lease *recorded_redlock_acquire(rl_redlock *redlock, const char *name, size_t name_len,
                                   int64_t wait_ms, const rl_acquire_options *options,
                                   rl_error *err);
rl_lease *recorded_attach(rl_client *client, const char *name, size_t name_len, const char *token,
                          size_t token_len, rl_error *err);
rl_status recorded_release(rl_lease *lease, rl_error *err);
rl_status recorded_extend(rl_lease *lease, int64_t lease_ms, rl_error *err);
rl_status recorded_upgrade(rl_lease *lease, int64_t wait_ms, rl_error *err);
rl_status recorded_downgrade(rl_lease *lease, rl_error *err);
void recorded_lease_free(rl_lease *lease);
void recorded_detach(rl_lease *lease);
int32_t recorded_state(const rl_lease *lease);
rl_status recorded_wait_lost(rl_lease *lease, int64_t wait_ms);
rl_request *recorded_acquire_start(rl_client *client, const char *name, size_t name_len,
                                   int64_t wait_ms, const rl_acquire_options *options);
rl_request *recorded_acquire_read_start(rl_client *client, const char *name, size_t name_len,
                                        int64_t wait_ms, const rl_acquire_options *options);
rl_request *recorded_acquire_write_start(rl_client *client, const char *name, size_t name_len,
                                         int64_t wait_ms, const rl_acquire_options *options);
rl_request *recorded_redlock_acquire_start(rl_redlock *redlock, const char *name, size_t name_len,
                                           int64_t wait_ms, const rl_acquire_options *options);
rl_request *recorded_release_start(rl_lease *lease);
rl_request *recorded_extend_start(rl_lease *lease, int64_t lease_ms);
rl_request *recorded_upgrade_start(rl_lease *lease, int64_t wait_ms);
rl_request *recorded_downgrade_start(rl_lease *lease);
rl_status recorded_wait(rl_request *request, int64_t wait_ms);
rl_status recorded_cancel(rl_request *request);
rl_lease *recorded_take_lease(rl_request *request);
void recorded_request_free(rl_request *request);
rl_status recorded_force_release(rl_client *client, const char *name, size_t name_len,
                                 const char *token, size_t token_len, rl_error *err);
rl_info *recorded_inspect(rl_client *client, const char *name, size_t name_len, rl_error *err);
void recorded_shutdown(rl_client *client);
void recorded_close(rl_client *client);
void recorded_redlock_shutdown(rl_redlock *redlock);
void recorded_redlock_close(rl_redlock *redlock);

/* With parameters, so that record.c can call the library itself: (rl_acquire)(..). */
#define rl_acquire_options_set_lease_ms(...) recorded_set_lease_ms(__VA_ARGS__)
#define rl_acquire_options_set_renew(...) recorded_set_renew(__VA_ARGS__)
#define rl_acquire_options_set_local_burst(...) recorded_set_local_burst(__VA_ARGS__)
#define rl_acquire_options_set_format(...) recorded_set_format(__VA_ARGS__)
#define rl_acquire_options_set_reentrant(...) recorded_set_reentrant(__VA_ARGS__)
#define rl_acquire_options_set_owner(...) recorded_set_owner(__VA_ARGS__)
#define rl_acquire_options_free(...) recorded_options_free(__VA_ARGS__)
#define rl_acquire(...) recorded_acquire(__VA_ARGS__)
#define rl_rw_acquire_read(...) recorded_acquire_read(__VA_ARGS__)
#define rl_rw_acquire_write(...) recorded_acquire_write(__VA_ARGS__)
#define rl_redlock_acquire(...) recorded_redlock_acquire(__VA_ARGS__)
#define rl_lease_attach(...) recorded_attach(__VA_ARGS__)
#define rl_release(...) recorded_release(__VA_ARGS__)
#define rl_extend(...) recorded_extend(__VA_ARGS__)
#define rl_rw_upgrade(...) recorded_upgrade(__VA_ARGS__)
#define rl_rw_downgrade(...) recorded_downgrade(__VA_ARGS__)
#define rl_lease_free(...) recorded_lease_free(__VA_ARGS__)
#define rl_lease_detach(...) recorded_detach(__VA_ARGS__)
#define rl_lease_state(...) recorded_state(__VA_ARGS__)
#define rl_lease_wait_lost(...) recorded_wait_lost(__VA_ARGS__)
#define rl_acquire_start(...) recorded_acquire_start(__VA_ARGS__)
#define rl_rw_acquire_read_start(...) recorded_acquire_read_start(__VA_ARGS__)
#define rl_rw_acquire_write_start(...) recorded_acquire_write_start(__VA_ARGS__)
#define rl_redlock_acquire_start(...) recorded_redlock_acquire_start(__VA_ARGS__)
#define rl_release_start(...) recorded_release_start(__VA_ARGS__)
#define rl_extend_start(...) recorded_extend_start(__VA_ARGS__)
#define rl_rw_upgrade_start(...) recorded_upgrade_start(__VA_ARGS__)
#define rl_rw_downgrade_start(...) recorded_downgrade_start(__VA_ARGS__)
#define rl_request_wait(...) recorded_wait(__VA_ARGS__)
#define rl_request_cancel(...) recorded_cancel(__VA_ARGS__)
#define rl_request_take_lease(...) recorded_take_lease(__VA_ARGS__)
#define rl_request_free(...) recorded_request_free(__VA_ARGS__)
#define rl_force_release(...) recorded_force_release(__VA_ARGS__)
#define rl_inspect(...) recorded_inspect(__VA_ARGS__)
#define rl_client_shutdown(...) recorded_shutdown(__VA_ARGS__)
#define rl_client_close(...) recorded_close(__VA_ARGS__)
#define rl_redlock_shutdown(...) recorded_redlock_shutdown(__VA_ARGS__)
#define rl_redlock_close(...) recorded_redlock_close(__VA_ARGS__)

#endif
