// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The functions of the host. None of them calls the module. Texts are borrowed for the call.
#pragma once

#include <cstddef>
#include <cstdint>

#define RL_IMPORT(name) extern "C" __attribute__((import_module("redlatch"), import_name(#name)))

// Connect to host and port; without a port to a unix socket with this path. rl_dialled() or
// rl_dial_failed() follows, and rl_closed() at the end of a connection that the server ends.
RL_IMPORT(dial)
void host_dial(int32_t wire, const char *host, size_t host_size, const char *port,
               size_t port_size);
// Close it, also while it is dialled. Nothing more is heard of it.
RL_IMPORT(close) void host_close(int32_t wire);
RL_IMPORT(send) void host_send(int32_t wire, const char *bytes, size_t size);
// A call has its result: a status of docs/errors.md. `fence`: of the lease that it has acquired.
RL_IMPORT(finished)
void host_finished(int32_t call, int32_t status, int64_t fence, const char *message, size_t size);
// A lease, by the number of the call that has acquired it, has ended: a state of lock::Lease.
RL_IMPORT(ended) void host_ended(int32_t lease, int32_t state, const char *reason, size_t size);
// The application is to give credentials: rl_give_credentials() or rl_fail_credentials() follows.
RL_IMPORT(ask) void host_ask();
// The client was shut down, and has no connection.
RL_IMPORT(shut) void host_shut();
RL_IMPORT(log) void host_log(int32_t level, const char *text, size_t size);

// The machine.
RL_IMPORT(random) void host_random(void *bytes, size_t size);
// At most `size` bytes. @return how many.
RL_IMPORT(host_name) size_t host_host_name(char *name, size_t size);
RL_IMPORT(process_number) int32_t host_process_number();

#undef RL_IMPORT
