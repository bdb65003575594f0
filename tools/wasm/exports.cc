// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The functions of the module. Each instance has one client: a trap ends no other, and the memory
// is freed with the instance. `now`: nanoseconds of a clock that counts suspend, and is
// never 0. Each text is in the buffer, where the host puts it before the call or takes it after.
#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/password.h"
#include "client.h"
#include "config/option_table.h"
#include "config/options.h"
#include "host.h"
#include "protocol/keys.h"
#include "wire.h"

#define RL_EXPORT(name) extern "C" __attribute__((export_name(#name)))

using namespace redlatch;

namespace {

std::string g_buffer;
config::Options g_options;
lock::AcquireOptions g_acquire;
std::unique_ptr<wasm::Client> g_client;

std::string_view text(size_t size) { return {g_buffer.data(), size}; }

// NAME=VALUE.
std::pair<std::string_view, std::string_view> option(size_t size) {
  const std::string_view both = text(size);
  const size_t end = std::min(both.find('='), both.size());
  return {both.substr(0, end), both.substr(std::min(end + 1, both.size()))};
}

// @return the status; its message is in the buffer.
int32_t answer(Outcome &&outcome) {
  g_buffer = std::move(outcome.message);
  return static_cast<int32_t>(outcome.status);
}

void settle(Nanos now) {
  try {
    g_client->settle(now);
  } catch (const std::bad_alloc &) {
    g_client->drop_all(now);
  }
}

// @return what `call` returns; kNoMemory if it was not started.
template <class Call>
int32_t run(Nanos now, const Call &call) {
  int32_t result = 0;
  try {
    result = call(*g_client);
  } catch (const std::bad_alloc &) {
    result = answer({Status::kNoMemory, "no memory"});
  }
  settle(now);
  return result;
}

template <class Event>
void give(Nanos now, const Event &event) {
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

// `word`: the host's reason why a dial failed.
DialFailure dial_failure(std::string_view word) {
  constexpr std::pair<std::string_view, int> kReasons[] = {
      {"ECONNREFUSED", ECONNREFUSED}, {"ENOENT", ENOENT},         {"EACCES", EACCES},
      {"ETIMEDOUT", ETIMEDOUT},       {"ECONNRESET", ECONNRESET}, {"EHOSTUNREACH", EHOSTUNREACH},
      {"ENETUNREACH", ENETUNREACH}};
  for (const auto &[reason, number] : kReasons) {
    if (reason == word) return {DialFailure::Kind::kSystem, number, {}};
  }
  return {DialFailure::Kind::kNameUnknown, 0, std::string(word)};
}

}  // namespace

// A buffer of at least `size` bytes.
RL_EXPORT(rl_buffer) char *rl_buffer(size_t size) {
  if (g_buffer.size() < size) g_buffer.resize(size);
  return g_buffer.data();
}

// The size of the text that the last call has left there.
RL_EXPORT(rl_text_size) size_t rl_text_size() { return g_buffer.size(); }

// Before rl_open(). In: NAME=VALUE, an option. @return a status.
RL_EXPORT(rl_set) int32_t rl_set(size_t size) {
  const auto [name, value] = option(size);
  return answer(g_options.set(name, value));
}

// Before all others, and once. In: the URL, or those of a Redlock. @return a status.
RL_EXPORT(rl_open) int32_t rl_open(size_t size) {
  const std::string urls(text(size));
  std::vector<Settings> nodes(1);
  QuorumSettings quorum;
  const bool is_quorum = urls.find(' ') != std::string::npos;
  auto outcome =
      is_quorum ? g_options.resolve(urls, nodes, quorum) : g_options.resolve(urls, nodes.front());
  if (outcome.ok()) outcome = wasm::Client::check(nodes);
  if (!outcome.ok()) return answer(std::move(outcome));
  g_client = std::make_unique<wasm::Client>(std::move(nodes),
                                            is_quorum ? std::optional(quorum) : std::nullopt);
  return 0;
}

// In: NAME=VALUE, an option of the next rl_acquire(). @return a status.
RL_EXPORT(rl_set_acquire) int32_t rl_set_acquire(size_t size) {
  const auto [name, value] = option(size);
  return answer(config::set_option(g_acquire, name, value));
}

// In: the name. @return the number of the call; else a status, which is not above 0.
RL_EXPORT(rl_acquire)
int32_t rl_acquire(size_t size, int64_t ttl_ms, int64_t wait_ms, Nanos now) {
  lock::AcquireOptions options = std::exchange(g_acquire, {});
  auto outcome = protocol::check_name(text(size));
  if (outcome.ok()) outcome = config::check_ttl(ttl_ms);
  if (outcome.ok()) outcome = config::choose_format(options, options.format);
  if (!outcome.ok()) return answer(std::move(outcome));
  options.ttl = ttl_ms * kMs;
  options.mode = config::mode_of(options);
  return run(now, [&](wasm::Client &client) {
    return client.acquire(text(size), options, std::max<int64_t>(wait_ms, -1), now);
  });
}

// @return the number of the call; 0: the lease has ended.
RL_EXPORT(rl_release) int32_t rl_release(int32_t lease, Nanos now) {
  return run(now, [&](wasm::Client &client) { return client.release(lease, now); });
}

RL_EXPORT(rl_cancel) void rl_cancel(int32_t call, Nanos now) {
  give(now, [&](wasm::Client &client) { client.cancel(call, now); });
}

// In: the user, which may be empty, and the password. `valid_ms`: -1: without end.
RL_EXPORT(rl_give_credentials)
void rl_give_credentials(size_t user_size, size_t size, int64_t valid_ms, Nanos now) {
  const std::string_view both = text(size);
  const Nanos valid_for = valid_ms < 0 ? kNever : valid_ms * kMs;
  give(now, [&](wasm::Client &client) {
    client.give_credentials(both.substr(0, user_size), both.substr(user_size), valid_for, now);
  });
  wipe(g_buffer);
}

// In: why the application has none.
RL_EXPORT(rl_fail_credentials) void rl_fail_credentials(size_t size, Nanos now) {
  give(now, [&](wasm::Client &client) { client.fail_credentials(text(size), now); });
}

RL_EXPORT(rl_watch_credentials) void rl_watch_credentials(Nanos now) {
  give(now, [&](wasm::Client &client) { client.watch_credentials(); });
}

// host_shut() follows.
RL_EXPORT(rl_shut_down) void rl_shut_down(Nanos now) {
  give(now, [&](wasm::Client &client) { client.shut_down(now); });
}

// The host need not stay for a client without calls and leases.
RL_EXPORT(rl_is_busy) int32_t rl_is_busy() { return g_client->is_busy() ? 1 : 0; }

RL_EXPORT(rl_dialled) void rl_dialled(int32_t wire, Nanos now) {
  give(now, wire, [&](wasm::Wire &seen) { seen.on_dialled(now); });
}

// In: the reason.
RL_EXPORT(rl_dial_failed) void rl_dial_failed(int32_t wire, size_t size, Nanos now) {
  give(now, wire, [&](wasm::Wire &seen) { seen.on_dial_failed(dial_failure(text(size)), now); });
}

// In: the bytes that arrived.
RL_EXPORT(rl_bytes) void rl_bytes(int32_t wire, size_t size, Nanos now) {
  give(now, wire, [&](wasm::Wire &seen) { seen.on_bytes(text(size), now); });
}

RL_EXPORT(rl_closed) void rl_closed(int32_t wire, Nanos now) {
  give(now, wire, [&](wasm::Wire &seen) { seen.on_closed(now); });
}

// At rl_next_due(), or later.
RL_EXPORT(rl_time) void rl_time(Nanos now) {
  give(now, [&](wasm::Client &client) { client.on_time(now); });
}

RL_EXPORT(rl_next_due) Nanos rl_next_due() { return g_client->next_due(); }
