// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The functions of the module. Each instance has one client: a trap ends no other, and the memory
// is freed with the instance. `now`: nanoseconds of a monotonic clock, never 0. `size`: how many
// bytes the host has put into the buffer before. Each text there is followed by a 0.
#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/dial_failure.h"
#include "client.h"
#include "config/option_table.h"
#include "config/options.h"
#include "host.h"
#include "protocol/keys.h"
#include "wire.h"

#define RL_EXPORT(name) extern "C" __attribute__((export_name(#name)))

using namespace redlatch;

namespace {

std::array<char, 65'536> g_buffer;  // PAGE of shell.mjs
std::unique_ptr<wasm::Client> g_client;

std::string_view bytes(size_t size) { return {g_buffer.data(), size}; }

// Throws std::bad_alloc.
std::vector<std::string_view> texts(size_t size) {
  std::vector<std::string_view> result;
  for (std::string_view rest = bytes(size); !rest.empty();) {
    result.push_back(rest.substr(0, rest.find('\0')));
    rest.remove_prefix(result.back().size() + 1);
  }
  return result;
}

// Calls set(name, value) for each option, NAME=VALUE, until it fails.
template <class Set>
Outcome set_options(std::span<const std::string_view> options, const Set &set) {
  Outcome outcome;
  for (const std::string_view option : options) {
    const size_t end = option.find('=');
    if (outcome.ok()) outcome = set(option.substr(0, end), option.substr(end + 1));
  }
  return outcome;
}

void settle(Nanos now) {
  if (!g_client) return;
  try {
    g_client->settle(now);
  } catch (const std::bad_alloc &) {
    g_client->drop_all(now);
  }
  if (!g_client->is_shut()) return;
  g_client.reset();
  host_shut();
}

// An event, or a call without a result. Without memory all connections are made again.
template <class Event>
void give(Nanos now, const Event &event) {
  if (!g_client) return;
  try {
    event(*g_client);
  } catch (const std::bad_alloc &) {
    g_client->drop_all(now);
  }
  settle(now);
}

template <class Event>
void give(Nanos now, int32_t number, const Event &event) {
  give(now, [&](wasm::Client &) {
    if (wasm::Wire *wire = wasm::Wire::find(number)) event(*wire);
  });
}

// A call: host_finished() follows. `start` returns why the call was not started, or ok.
template <class Start>
void run(int32_t call, Nanos now, const Start &start) {
  Outcome outcome;
  try {
    outcome = start();
  } catch (const std::bad_alloc &) {
    outcome.status = Status::kNoMemory;
  }
  if (!outcome.ok()) {
    host_finished(call, static_cast<int32_t>(outcome.status), 0, outcome.message.data(),
                  outcome.message.size());
  }
  settle(now);
}

Outcome closed() { return failure(Status::kClosed, "the client is closed"); }

Outcome open(std::span<const std::string_view> words) {
  config::Options options;
  std::vector<Settings> nodes(1);
  QuorumSettings quorum;
  auto outcome = set_options(words.subspan(1), [&](std::string_view name, std::string_view value) {
    return options.set(name, value);
  });
  const bool is_quorum = words.front().find(' ') != std::string_view::npos;
  if (outcome.ok()) {
    outcome = is_quorum ? options.resolve(words.front(), nodes, quorum)
                        : options.resolve(words.front(), nodes.front());
  }
  if (outcome.ok()) outcome = wasm::Client::check(nodes);
  if (!outcome.ok()) return outcome;
  g_client = std::make_unique<wasm::Client>(std::move(nodes),
                                            is_quorum ? std::optional(quorum) : std::nullopt);
  return {};
}

Outcome acquire(int32_t call, std::span<const std::string_view> words, int64_t ttl_ms,
                int64_t wait_ms, Nanos now) {
  lock::AcquireOptions options;
  if (!g_client) return closed();
  auto outcome = set_options(words.subspan(1), [&](std::string_view name, std::string_view value) {
    return config::set_option(options, name, value);
  });
  if (outcome.ok()) outcome = protocol::check_name(words.front());
  if (outcome.ok()) outcome = config::check_ttl(ttl_ms);
  if (outcome.ok()) outcome = config::choose_format(options, options.format);
  if (!outcome.ok()) return outcome;
  options.ttl = ttl_ms * kMs;
  options.mode = config::mode_of(options);
  g_client->acquire(call, words.front(), options, std::max<int64_t>(wait_ms, -1), now);
  return {};
}

}  // namespace

// @return the buffer: 64 KiB, which stay where they are.
RL_EXPORT(rl_buffer) char *rl_buffer() { return g_buffer.data(); }

// A call, before all others and once. Texts: the URL, or those of a Redlock with spaces between
// them; options.
RL_EXPORT(rl_open) void rl_open(int32_t call, size_t size, int32_t asks_credentials, Nanos now) {
  run(call, now, [&] {
    auto outcome = open(texts(size));
    if (!outcome.ok()) return outcome;
    if (asks_credentials != 0) g_client->watch_credentials();
    host_finished(call, 0, 0, nullptr, 0);
    return outcome;
  });
}

// A call. Texts: the name, options of the acquisition.
RL_EXPORT(rl_acquire)
void rl_acquire(int32_t call, size_t size, int64_t ttl_ms, int64_t wait_ms, Nanos now) {
  run(call, now, [&] { return acquire(call, texts(size), ttl_ms, wait_ms, now); });
}

// A call. `lease`: the number of the call that acquired it.
RL_EXPORT(rl_release) void rl_release(int32_t call, int32_t lease, Nanos now) {
  run(call, now, [&] {
    if (!g_client) return closed();
    g_client->release(call, lease, now);
    return Outcome();
  });
}

RL_EXPORT(rl_cancel) void rl_cancel(int32_t call, Nanos now) {
  give(now, [&](wasm::Client &client) { client.cancel(call, now); });
}

// Texts: the user, which may be empty, and the password.
RL_EXPORT(rl_give_credentials) void rl_give_credentials(size_t size, Nanos now) {
  give(now, [&](wasm::Client &client) {
    const auto given = texts(size);
    client.give_credentials(given[0], given[1], now);
  });
  g_buffer.fill(0);
}

// host_shut() follows.
RL_EXPORT(rl_shut_down) void rl_shut_down(Nanos now) {
  give(now, [&](wasm::Client &client) { client.shut_down(now); });
}

RL_EXPORT(rl_dialled) void rl_dialled(int32_t wire, Nanos now) {
  give(now, wire, [&](wasm::Wire &seen) { seen.on_dialled(now); });
}

// The bytes that arrived.
RL_EXPORT(rl_bytes) void rl_bytes(int32_t wire, size_t size, Nanos now) {
  give(now, wire, [&](wasm::Wire &seen) { seen.on_bytes(bytes(size), now); });
}

// Bytes: the reason, or none if the server has closed it.
RL_EXPORT(rl_closed) void rl_closed(int32_t wire, size_t size, Nanos now) {
  const std::string_view why = size == 0 ? kClosedByServer : bytes(size);
  give(now, wire, [&](wasm::Wire &seen) { seen.on_closed(why, now); });
}

// At rl_next_due(), or later.
RL_EXPORT(rl_time) void rl_time(Nanos now) {
  give(now, [&](wasm::Client &client) { client.on_time(now); });
}

RL_EXPORT(rl_next_due) Nanos rl_next_due() { return g_client ? g_client->next_due() : kNever; }
