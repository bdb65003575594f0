// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The functions of the host. None of them calls the module. Texts are borrowed for the call.
#pragma once

#include <cstddef>
#include <cstdint>

#define RL_IMPORT(name) extern "C" __attribute__((import_module("redlatch"), import_name(#name)))

// Connect to host and port; without a port to a unix socket with this path. rl_dialled() follows,
// and rl_closed() if it fails or the server ends the connection.
RL_IMPORT(dial)
void host_dial(int32_t wire, const char *host, size_t host_size, const char *port,
               size_t port_size);
// Close it, also while it is dialled. No event follows.
RL_IMPORT(close) void host_close(int32_t wire);
RL_IMPORT(send) void host_send(int32_t wire, const char *bytes, size_t size);
// A call has its result: a status of docs/errors.md. `fence`: that of the acquired lease.
RL_IMPORT(finished)
void host_finished(int32_t call, int32_t status, int64_t fence, const char *message, size_t size);
// A lease has ended: a state of lock::Lease. `lease`: the number of the call that acquired it.
RL_IMPORT(ended) void host_ended(int32_t lease, int32_t state, const char *reason, size_t size);
// The application must give credentials: rl_give_credentials() follows.
RL_IMPORT(ask) void host_ask();
// The client was shut down, and has no connection.
RL_IMPORT(shut) void host_shut();
RL_IMPORT(log) void host_log(int32_t level, const char *text, size_t size);
RL_IMPORT(random) void host_random(void *bytes, size_t size);

#undef RL_IMPORT
