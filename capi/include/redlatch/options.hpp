/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Options for C++17, a part of redlatch.hpp, which includes it.
 */
#ifndef REDLATCH_OPTIONS_HPP
#define REDLATCH_OPTIONS_HPP

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "redlatch/error.hpp"
#include "redlatch/redlatch.h"

namespace redlatch {

/** Options of a client by name, as rl_client_options_set() lists them. Since: 0.1. */
class client_options {
 public:
  client_options() : handle_(detail::require_memory(rl_client_options_new())) {}

  /** Set `name` to `value`, both text. @throws error RL_E_INVALID, RL_E_UNSUPPORTED. */
  client_options& set(std::string_view name, std::string_view value) & {
    const detail::outcome outcome;
    outcome.require(rl_client_options_set(get(), name.data(), name.size(), value.data(),
                                          value.size(), outcome));
    return *this;
  }
  client_options&& set(std::string_view name, std::string_view value) && {
    return std::move(set(name, value));
  }

  [[nodiscard]] rl_client_options* get() const noexcept { return handle_.get(); }

 private:
  detail::owner<rl_client_options, rl_client_options_free> handle_;
};

/**
 * Options of an acquisition, chainable:
 *
 *     redlatch::acquire_options().ttl(10s).label("nightly")
 *
 * @throws error RL_E_INVALID for a value that is not allowed; each acquire with these options then
 *               fails with it as well, until the same option is set to one that is. Since: 0.1.
 */
class acquire_options {
 public:
  acquire_options() : handle_(detail::require_memory(rl_acquire_options_new())) {}

  /** Set `name` to `value`, both text, as docs/options.md lists them. */
  acquire_options& set(std::string_view name, std::string_view value) & {
    const detail::outcome outcome;
    outcome.require(rl_acquire_options_set(get(), name.data(), name.size(), value.data(),
                                           value.size(), outcome));
    return *this;
  }
  acquire_options&& set(std::string_view name, std::string_view value) && {
    return std::move(set(name, value));
  }
  /** The value of the option `name` as text; "" for an empty one and an unknown name. */
  [[nodiscard]] std::string get(std::string_view name) const {
    return detail::read_text(
        [&](auto... to) { return rl_acquire_options_get(get(), name.data(), name.size(), to...); });
  }

  // Each also for a temporary, so that a chain can be handed on by value.
  // clang-format off
  // ---- acquire options: made of options.def by tools/gen_options.py ----
  /** How long the server keeps the lock without renewal. Allowed: 10 ms to 7 days. Default: 30s. */
  acquire_options& ttl(std::chrono::milliseconds value) & {
    return set("ttl", detail::text_of(value));
  }
  acquire_options&& ttl(std::chrono::milliseconds value) && { return std::move(ttl(value)); }
  /** Renew automatically, every third of the ttl while held. Allowed: yes or no. Default: yes. */
  acquire_options& renew(bool value) & {
    return set("renew", detail::text_of(value));
  }
  acquire_options&& renew(bool value) && { return std::move(renew(value)); }
  /** Longest time that the lease lasts; then it is lost, and the lock is released; 0: no limit.
   *  Allowed: 0 or 1 ms to 7 days. Default: 0. */
  acquire_options& max_hold(std::chrono::milliseconds value) & {
    return set("max_hold", detail::text_of(value));
  }
  acquire_options&& max_hold(std::chrono::milliseconds value) && {
    return std::move(max_hold(value));
  }
  /** Text that inspections show for the holder; not for readers, and in the format string only;
   *  costs a background command. Allowed: at most 256 bytes. */
  acquire_options& label(std::string_view value) & {
    return set("label", detail::text_of(value));
  }
  acquire_options&& label(std::string_view value) && { return std::move(label(value)); }
  /** Return a pushed grant only after the server has confirmed it; costs one more round trip.
   *  Allowed: yes or no. Default: no. */
  acquire_options& confirm(bool value) & {
    return set("confirm", detail::text_of(value));
  }
  acquire_options&& confirm(bool value) && { return std::move(confirm(value)); }
  /** How many times in a row this client may hand the lock to its own waiters before the server's
   *  queue is served. 0: never (strict FIFO if all callers set 0). Allowed: 0 to 31. Default: 16.
   *  */
  acquire_options& max_local_handoffs(int32_t value) & {
    return set("max_local_handoffs", detail::text_of(value));
  }
  acquire_options&& max_local_handoffs(int32_t value) && {
    return std::move(max_local_handoffs(value));
  }
  /** After how many grants in a row the lock is left free for libraries that poll; 0: never; not
   *  set: automatic, once such a library was found. Allowed: 0 to 1000000. */
  acquire_options& yield_every(int32_t value) & {
    return set("yield_every", detail::text_of(value));
  }
  acquire_options&& yield_every(int32_t value) && { return std::move(yield_every(value)); }
  /** How long the lock is left free; shorter if another library takes it. Allowed: 1 ms to 1
   *  minute. Default: 150ms. */
  acquire_options& yield_for(std::chrono::milliseconds value) & {
    return set("yield_for", detail::text_of(value));
  }
  acquire_options&& yield_for(std::chrono::milliseconds value) && {
    return std::move(yield_for(value));
  }
  /** Name of the owner that acquires. It may read again while it reads; any other second
   *  acquisition is refused as already held, unless reentrant is set. Allowed: 1 to 256 bytes. */
  acquire_options& owner(std::string_view value) & {
    return set("owner", detail::text_of(value));
  }
  acquire_options&& owner(std::string_view value) && { return std::move(owner(value)); }
  /** Let the owner acquire the lock again while it holds it; the format is then hash. Allowed: yes
   *  or no. Default: no. */
  acquire_options& reentrant(bool value) & {
    return set("reentrant", detail::text_of(value));
  }
  acquire_options&& reentrant(bool value) && { return std::move(reentrant(value)); }
  /** How the lock is stored in its key; auto: hash for a reentrant lock, else string. Allowed:
   *  auto, string, hash or hash-rw. Default: auto. */
  acquire_options& format(std::string_view value) & {
    return set("format", detail::text_of(value));
  }
  acquire_options&& format(std::string_view value) && { return std::move(format(value)); }
  /** How many replicas must confirm a grant (WAIT) before the caller gets it; 0: none. With too few
   *  the grant is released. This narrows the window of a failover and does not close it. Allowed: 0
   *  to 64. Default: 0. */
  acquire_options& min_replicas(int32_t value) & {
    return set("min_replicas", detail::text_of(value));
  }
  acquire_options&& min_replicas(int32_t value) && { return std::move(min_replicas(value)); }
  /** How long the replicas have to confirm; at most the ttl and, with a wait above 0, the rest of
   *  the wait. Allowed: 1 ms to 1 hour. Default: 1s. */
  acquire_options& sync_timeout(std::chrono::milliseconds value) & {
    return set("sync_timeout", detail::text_of(value));
  }
  acquire_options&& sync_timeout(std::chrono::milliseconds value) && {
    return std::move(sync_timeout(value));
  }
  /** How long after its grant the client keeps the lock when its caller has released it, so that
   *  the next acquisition here needs no call; another client that asks gets the lock at once; 0:
   *  not at all. Allowed: 0 or 1 ms to 7 days. Default: 0. */
  acquire_options& retain(std::chrono::milliseconds value) & {
    return set("retain", detail::text_of(value));
  }
  acquire_options&& retain(std::chrono::milliseconds value) && { return std::move(retain(value)); }
  // ---- end of acquire options ----
  // clang-format on

  [[nodiscard]] rl_acquire_options* get() const noexcept { return handle_.get(); }

 private:
  detail::owner<rl_acquire_options, rl_acquire_options_free> handle_;
};

}  // namespace redlatch

#endif
