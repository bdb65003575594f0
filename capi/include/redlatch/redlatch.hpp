/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * redlatch for C++17: a header over redlatch.h, which says what every call means and promises.
 *
 *     auto client = redlatch::client::open("redis://localhost:6379");
 *     if (auto lease = client.acquire("report", 5s)) {
 *       ... work, and pass lease->fence() to what you write to ...
 *       lease->release();
 *     }
 *
 *     redlatch::mutex report(client, "report");
 *     std::scoped_lock hold(report);
 *     ... work; report.lease().check() throws when the lease is lost ...
 *
 *     redlatch::shared_mutex cache(client, "cache");
 *     std::shared_lock reading(cache);
 *
 *     auto several = redlatch::redlock::open({"redis://a", "redis://b", "redis://c"});
 *     redlatch::mutex job(several, "job");
 *
 * Conventions
 *  1. RL_BUSY and RL_TIMEOUT are returned as `false`, or as an empty redlatch::attempt, which says
 *     why. A failure is a redlatch::error, which has the status.
 *  2. Every class owns one C handle and can only be moved. get() lends the handle for calls that
 *     only redlatch.h has: inspection, lists, and for event loops requests and completion queues. A
 *     moved-from object may be destroyed and assigned to, nothing else.
 *  3. Threads and fork are as redlatch.h says: client, lease and mutex may be used by any thread at
 *     the same time, options by one that changes them or by many that only read.
 *  4. Durations are of std::chrono, in milliseconds. A call that waits says for how long: a
 *     duration, or redlatch::forever for no limit. No call waits by default; try_acquire() does not
 *     wait.
 *  5. Destructors never throw: a lease that is still held is released in the background.
 */
#ifndef REDLATCH_HPP
#define REDLATCH_HPP

#if __cplusplus < 201703L
#error "redlatch.hpp must be compiled as C++17 or later (-std=c++17); redlatch.h is for older ones"
#elif !defined(__cpp_exceptions)
#error "redlatch.hpp must be compiled with exceptions (no -fno-exceptions); redlatch.h needs none"
#else

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "redlatch/error.hpp"    // IWYU pragma: export
#include "redlatch/options.hpp"  // IWYU pragma: export
#include "redlatch/redlatch.h"

namespace redlatch {

/** The type of redlatch::forever. */
struct forever_t {
  explicit forever_t() = default;
};
/**
 * A wait without limit. A negative duration is never taken for it; one above 1e15 ms is.
 * Since: 0.1.
 */
inline constexpr forever_t forever{};

/**
 * How long a call may wait: made of a duration or of redlatch::forever. A duration is rounded up to
 * milliseconds, so that no wait is cut short; a duration of zero or less, such as an expired
 * timeout, does not wait. Since: 0.1.
 */
class wait_limit {
 public:
  template <typename Rep, typename Period>
  wait_limit(const std::chrono::duration<Rep, Period>& duration) noexcept : ms_(to_ms(duration)) {}
  wait_limit(forever_t) noexcept : ms_(-1) {}

  /** As redlatch.h takes it: -1 has no limit. */
  [[nodiscard]] int64_t ms() const noexcept { return ms_; }

 private:
  template <typename Rep, typename Period>
  static int64_t to_ms(const std::chrono::duration<Rep, Period>& duration) noexcept {
    constexpr double kLongestMs = 1e15;  // longer ones have no limit
    const double ms = std::ceil(std::chrono::duration<double, std::milli>(duration).count());
    if (!(ms > 0)) return 0;
    return ms > kLongestMs ? -1 : static_cast<int64_t>(ms);
  }

  int64_t ms_;
};

/** Names for client::acquire_all(): redlatch::names().write("a").read("b"). Since: 0.1. */
class names {
 public:
  names() : handle_(detail::require_memory(rl_names_new())) {}

  /** Add `name`, to write or to read, as rl_names_add() does. @throws error RL_E_INVALID, .. */
  names& write(std::string_view name) & { return add(name, RL_MODE_WRITE); }
  names& read(std::string_view name) & { return add(name, RL_MODE_READ); }
  /** Add a path such as "a/b/c", as rl_names_add_path() does. @throws error RL_E_INVALID, .. */
  names& path(std::string_view path) & {
    const detail::outcome outcome;
    outcome.require(rl_names_add_path(get(), path.data(), path.size(), outcome));
    return *this;
  }
  names&& write(std::string_view name) && { return std::move(write(name)); }
  names&& read(std::string_view name) && { return std::move(read(name)); }
  names&& path(std::string_view whole) && { return std::move(path(whole)); }

  [[nodiscard]] rl_names* get() const noexcept { return handle_.get(); }

 private:
  names& add(std::string_view name, int32_t mode) {
    const detail::outcome outcome;
    outcome.require(rl_names_add(get(), name.data(), name.size(), mode, outcome));
    return *this;
  }

  detail::owner<rl_names, rl_names_free> handle_;
};

/**
 * One acquisition of a lock. Its destructor releases it in the background if it is still held;
 * release() waits for the server and says whether the lock was still ours. Any thread. Since: 0.1.
 */
class lease {
 public:
  /** Take over `handle`, which came from a function of redlatch.h. */
  explicit lease(rl_lease* handle) noexcept : handle_(handle) {}

  /**
   * Release, as rl_release() does.
   * @return false: this acquisition is over, and the owner of the reentrant lock has others.
   * @throws error RL_E_LOST (the lease had ended before), RL_E_NOT_HELD, RL_E_OUTCOME_UNKNOWN, ..
   * Blocks: at most command_timeout.
   */
  bool release() {
    const detail::outcome outcome;
    return outcome.answer(rl_release(get(), outcome), RL_STILL_HELD);
  }

  /**
   * Extend to `length` from now, as rl_extend() does. @throws error RL_E_LOST, RL_E_NOT_HELD, ..
   * Blocks: at most command_timeout.
   */
  void extend(std::chrono::milliseconds length) {
    const detail::outcome outcome;
    outcome.require(rl_extend(get(), length.count(), outcome));
  }

  /**
   * Upgrade the reader to the writer, as rl_rw_upgrade() does.
   * @return false: the wait ran out, and others read; the lease continues to read.
   * @throws error RL_E_DEADLOCK, RL_E_LOST, ..  Blocks: `limit`.
   */
  [[nodiscard]] bool upgrade(wait_limit limit) {
    const detail::outcome outcome;
    return outcome.answer(rl_rw_upgrade(get(), limit.ms(), outcome), RL_BUSY, RL_TIMEOUT);
  }

  /** upgrade() without a wait. @return false: others read; the lease continues to read. */
  [[nodiscard]] bool try_upgrade() { return upgrade(std::chrono::milliseconds(0)); }

  /** Downgrade the writer to a reader, as rl_rw_downgrade() does. @throws error RL_E_LOST, .. */
  void downgrade() {
    const detail::outcome outcome;
    outcome.require(rl_rw_downgrade(get(), outcome));
  }

  /** RL_MODE_WRITE or RL_MODE_READ, as last known. */
  [[nodiscard]] int32_t mode() const noexcept { return rl_lease_mode(get()); }

  /** How often the owner of a reentrant lock held it when this was granted, this included. */
  [[nodiscard]] int64_t hold_count() const noexcept { return rl_lease_hold_count(get()); }

  /** How many permits of a semaphore the lease has; 1 for every other lock. */
  [[nodiscard]] int64_t permits() const noexcept { return rl_lease_permits(get()); }

  /** How many names the lease has, and the fence of the one that was added as number `index`. */
  [[nodiscard]] int32_t part_count() const noexcept { return rl_lease_part_count(get()); }
  [[nodiscard]] int64_t part_fence(int32_t index) const noexcept {
    return rl_lease_part_fence(get(), index);
  }

  /** @throws error RL_E_LOST with its reason, RL_E_NOT_HELD, when this is not held. Local. */
  void check() const {
    const detail::outcome outcome;
    outcome.require(rl_lease_check(get(), outcome));
  }

  /** RL_LOST_*, why it was lost; RL_LOST_NONE if it was not. */
  [[nodiscard]] int32_t lost_reason() const noexcept { return rl_lease_lost_reason(get()); }
  /** The same for people; empty if it was not lost. */
  [[nodiscard]] std::string lost_text() const {
    return detail::read_text([&](auto... to) { return rl_lease_lost_text(get(), to...); });
  }

  /**
   * How often the holder has been asked to finish, and the last reason. get() is for
   * rl_lease_watch_recall().
   */
  [[nodiscard]] int64_t recall_count() const noexcept { return rl_lease_recall_count(get()); }
  [[nodiscard]] std::string recall_reason() const {
    return detail::read_text([&](auto... to) { return rl_lease_recall_reason(get(), to...); });
  }

  /**
   * Wait until the lease stops being held, at most `limit`. @return RL_LEASE_*: its state then.
   * @throws error RL_E_INVALID (a moved-from lease), RL_E_FORKED, RL_E_NO_MEMORY.
   */
  int32_t wait_lost(wait_limit limit) {
    const int32_t state = rl_lease_wait_lost(get(), limit.ms());
    if (state < 0) throw error(state, std::string());
    return state;
  }

  /** True if the lease is held, by the local clock. */
  [[nodiscard]] bool held() const noexcept { return rl_lease_state(get()) == RL_LEASE_HELD; }

  /** Remaining ttl, less the drift; 0 when it is not held. */
  [[nodiscard]] std::chrono::milliseconds remaining() const noexcept {
    return std::chrono::milliseconds(rl_lease_remaining_ms(get()));
  }

  /** The fence: pass it to the resource, and let the resource refuse a lower one. */
  [[nodiscard]] int64_t fence() const noexcept { return rl_lease_fence(get()); }

  /** The name of the lock, any bytes. */
  [[nodiscard]] std::string name() const { return text(rl_lease_name); }

  /** The token, for client::attach(). */
  [[nodiscard]] std::string token() const { return text(rl_lease_token); }

  /**
   * Hand the lease to another process, and return the token, with which one client::attach() can
   * take it over. @throws error RL_E_LOST, RL_E_NOT_HELD, .. as rl_lease_detach().
   */
  std::string detach() {
    detail::outcome outcome;
    std::string token(RL_TOKEN_BYTES + 1, '\0');
    outcome.require(rl_lease_detach(get(), token.data(), token.size(), outcome));
    token.resize(RL_TOKEN_BYTES);
    return token;
  }

  [[nodiscard]] rl_lease* get() const noexcept { return handle_.get(); }

 private:
  template <typename Write>
  [[nodiscard]] std::string text(const Write& write) const {
    std::string text(write(get(), nullptr, 0) + 1, '\0');
    text.resize(write(get(), text.data(), text.size()));
    return text;
  }

  detail::owner<rl_lease, rl_lease_free> handle_;
};

/**
 * The result of an acquire: an optional lease, and without one the reason. Moved-from: as an
 * optional. Since: 0.1.
 */
class attempt : public std::optional<lease> {
 public:
  attempt(lease&& got) noexcept : std::optional<lease>(std::move(got)) {}
  attempt(rl_status status, std::string why) : status_(status), why_(std::move(why)) {}

  /** RL_OK with a lease, else RL_BUSY or RL_TIMEOUT. */
  [[nodiscard]] rl_status status() const noexcept { return status_; }
  /** For people, such as "lock 'x' was not granted within 2 s; holder: .."; empty with a lease. */
  [[nodiscard]] const std::string& why() const noexcept { return why_; }

 private:
  rl_status status_ = RL_OK;
  std::string why_;
};

namespace detail {

/** The lease that `acquire` (rl_acquire() or a twin of it) is granted; nothing if it is busy. */
template <typename Acquire, typename Handle>
attempt take(const Acquire& acquire, Handle* handle, std::string_view name, wait_limit limit,
             const rl_acquire_options* options) {
  const outcome outcome;
  redlatch::lease got(acquire(handle, name.data(), name.size(), limit.ms(), options, outcome));
  if (got.get() != nullptr) return attempt(std::move(got));
  if (outcome.status() != RL_BUSY && outcome.status() != RL_TIMEOUT) outcome.raise();
  return {outcome.status(), rl_error_message(outcome)};
}

inline std::string info_text(const rl_info* info, int32_t part, int32_t row, int32_t field) {
  return read_text([&](auto... to) { return rl_info_text(info, part, row, field, to...); });
}

inline std::optional<std::chrono::milliseconds> info_ms(const rl_info* info, int32_t part,
                                                        int32_t row, int32_t field) {
  if (rl_info_has(info, part, row, field) == 0) return std::nullopt;
  return std::chrono::milliseconds(rl_info_number(info, part, row, field));
}

}  // namespace detail

// ---- finding: made of info_fields.def by tools/gen_info.py ----
/** A result of a check of a server: rl_client_check(). Since: 0.1. */
struct finding {
  finding(const rl_info* info, int32_t row)
      : address(detail::info_text(info, RL_PART_FINDING, row, RL_FIELD_ADDRESS)),
        id(detail::info_text(info, RL_PART_FINDING, row, RL_FIELD_ID)),
        level(rl_info_number(info, RL_PART_FINDING, row, RL_FIELD_LEVEL)),
        seen(detail::info_text(info, RL_PART_FINDING, row, RL_FIELD_SEEN)),
        advice(detail::info_text(info, RL_PART_FINDING, row, RL_FIELD_ADVICE)) {}

  /** Address of the server, without secrets. */
  std::string address;

  /** Name of the check, such as eviction; docs/health.md has the list. */
  std::string id;

  /** The severity: RL_LEVEL_*. */
  int64_t level;

  /** The value that was found, in words. */
  std::string seen;

  /** A remedy; empty if none is needed. */
  std::string advice;
};
// ---- end of finding ----

// ---- node_info: made of info_fields.def by tools/gen_info.py ----
/** A server of a client, as last known: rl_client_info(). Since: 0.1. */
struct node_info {
  node_info(const rl_info* info, int32_t row)
      : address(detail::info_text(info, RL_PART_NODE, row, RL_FIELD_ADDRESS)),
        state(rl_info_number(info, RL_PART_NODE, row, RL_FIELD_STATE)),
        reason(detail::info_text(info, RL_PART_NODE, row, RL_FIELD_REASON)),
        role(rl_info_number(info, RL_PART_NODE, row, RL_FIELD_ROLE)),
        version(detail::info_text(info, RL_PART_NODE, row, RL_FIELD_VERSION)),
        clock_difference(detail::info_ms(info, RL_PART_NODE, row, RL_FIELD_CLOCK_MS)) {}

  /** Address of the server, without secrets. */
  std::string address;

  /** The state: RL_NODE_*. */
  int64_t state;

  /** Why it is polled, has no vote or is away; else empty. */
  std::string reason;

  /** Role, as the server reports it: RL_ROLE_*. */
  int64_t role;

  /** Name and version, such as Valkey 8.0.1; empty if not known. */
  std::string version;

  /** By which its clock was ahead of the local clock, as last measured; nothing if not known. */
  std::optional<std::chrono::milliseconds> clock_difference;
};
// ---- end of node_info ----

/**
 * One server, or with redlock most of several. Its destructor shuts it down, which releases its
 * leases. Any thread. Since: 0.1.
 */
class client {
 public:
  /** Open a client for `url`, without touching the network. @throws error RL_E_INVALID, .. */
  [[nodiscard]] static client open(std::string_view url) {
    return client(rl_client_open, url, nullptr);
  }
  [[nodiscard]] static client open(std::string_view url, const client_options& options) {
    return client(rl_client_open, url, options.get());
  }

  /** Connect now, trying again within `limit`; with 0, once. @throws error RL_E_UNAVAILABLE, .. */
  void connect(wait_limit limit = std::chrono::milliseconds(0)) {
    const detail::outcome outcome;
    outcome.require(rl_client_connect(get(), limit.ms(), outcome));
  }

  /**
   * Acquire the lock `name` (any bytes) within `limit`: a duration, or redlatch::forever.
   * @return the lease, or nothing and why: another holder has the lock, and the wait ran out.
   * @throws error as rl_acquire() lists them.
   * Blocks: `limit`; with 0 at most connect_timeout + 2 x command_timeout.
   */
  [[nodiscard]] attempt acquire(std::string_view name, wait_limit limit) {
    return detail::take(rl_acquire, get(), name, limit, nullptr);
  }
  [[nodiscard]] attempt acquire(std::string_view name, wait_limit limit,
                                const acquire_options& options) {
    return detail::take(rl_acquire, get(), name, limit, options.get());
  }

  /** Acquire without a wait: one try. Otherwise as acquire(). */
  [[nodiscard]] attempt try_acquire(std::string_view name) {
    return acquire(name, std::chrono::milliseconds(0));
  }
  [[nodiscard]] attempt try_acquire(std::string_view name, const acquire_options& options) {
    return acquire(name, std::chrono::milliseconds(0), options);
  }

  /** Acquire all of `names`, or none, as rl_acquire_all() does. Otherwise as acquire(). */
  [[nodiscard]] attempt acquire_all(const names& all, wait_limit limit) {
    return acquire_all_with(all, limit, nullptr);
  }
  [[nodiscard]] attempt acquire_all(const names& all, wait_limit limit,
                                    const acquire_options& options) {
    return acquire_all_with(all, limit, options.get());
  }

  /** Acquire for reading, together with other readers, as rl_rw_acquire_read() does. */
  [[nodiscard]] attempt acquire_read(std::string_view name, wait_limit limit) {
    return detail::take(rl_rw_acquire_read, get(), name, limit, nullptr);
  }
  [[nodiscard]] attempt acquire_read(std::string_view name, wait_limit limit,
                                     const acquire_options& options) {
    return detail::take(rl_rw_acquire_read, get(), name, limit, options.get());
  }
  /** .. without a wait. */
  [[nodiscard]] attempt try_acquire_read(std::string_view name) {
    return acquire_read(name, std::chrono::milliseconds(0));
  }
  [[nodiscard]] attempt try_acquire_read(std::string_view name, const acquire_options& options) {
    return acquire_read(name, std::chrono::milliseconds(0), options);
  }

  /** Acquire for writing, alone, as rl_rw_acquire_write() does. */
  [[nodiscard]] attempt acquire_write(std::string_view name, wait_limit limit) {
    return detail::take(rl_rw_acquire_write, get(), name, limit, nullptr);
  }
  [[nodiscard]] attempt acquire_write(std::string_view name, wait_limit limit,
                                      const acquire_options& options) {
    return detail::take(rl_rw_acquire_write, get(), name, limit, options.get());
  }
  /** .. without a wait. */
  [[nodiscard]] attempt try_acquire_write(std::string_view name) {
    return acquire_write(name, std::chrono::milliseconds(0));
  }
  [[nodiscard]] attempt try_acquire_write(std::string_view name, const acquire_options& options) {
    return acquire_write(name, std::chrono::milliseconds(0), options);
  }

  /**
   * Take over a detached lease, as rl_lease_attach() does. `fence` is lease::fence() of the
   * detached one. @throws error RL_E_NOT_HELD, ..
   */
  [[nodiscard]] redlatch::lease attach(std::string_view name, std::string_view token,
                                       int64_t fence = 0) {
    return attach_with(name, token, fence, nullptr);
  }
  [[nodiscard]] redlatch::lease attach(std::string_view name, std::string_view token, int64_t fence,
                                       const acquire_options& options) {
    return attach_with(name, token, fence, options.get());
  }

  /** The state of each server, as last known, in the order of the URLs. No command is sent. */
  [[nodiscard]] std::vector<node_info> info() const {
    const detail::outcome outcome;
    const detail::owner<rl_info, rl_info_free> info(rl_client_info(get(), outcome));
    if (!info) outcome.raise();
    std::vector<node_info> nodes;
    for (int32_t i = 0; i < rl_info_count(info.get(), RL_PART_NODE); ++i) {
      nodes.emplace_back(info.get(), i);
    }
    return nodes;
  }

  /**
   * Remove the holder with `token`, or any holder, as rl_force_release() and
   * rl_force_release_any() do. @return false: there is no such holder. @throws error
   */
  bool force_release(std::string_view name, std::string_view token) {
    const detail::outcome outcome;
    return outcome.answer(
        rl_force_release(get(), name.data(), name.size(), token.data(), token.size(), outcome),
        RL_E_NOT_HELD);
  }
  bool force_release_any(std::string_view name) {
    const detail::outcome outcome;
    return outcome.answer(rl_force_release_any(get(), name.data(), name.size(), outcome),
                          RL_E_NOT_HELD);
  }

  /**
   * Ask the holders of the lock `name` to finish, as rl_recall() does. @return the number of
   * holders whose client has heard it. @throws error
   */
  int64_t recall(std::string_view name, std::string_view reason = {}) {
    const detail::outcome outcome;
    int64_t heard = 0;
    outcome.require(
        rl_recall(get(), name.data(), name.size(), reason.data(), reason.size(), &heard, outcome));
    return heard;
  }

  /** Check each server now for dangers to locks, as rl_client_check() does. */
  [[nodiscard]] std::vector<finding> check(wait_limit limit = std::chrono::milliseconds(0)) const {
    const detail::outcome outcome;
    const detail::owner<rl_info, rl_info_free> info(rl_client_check(get(), limit.ms(), outcome));
    if (!info) outcome.raise();
    std::vector<finding> findings;
    for (int32_t i = 0; i < rl_info_count(info.get(), RL_PART_FINDING); ++i) {
      findings.emplace_back(info.get(), i);
    }
    return findings;
  }

  /** The oldest line of the log, as rl_client_log_next(); empty if there is none. */
  [[nodiscard]] std::string next_log_line() {
    return detail::read_text([&](auto... to) { return rl_client_log_next(get(), to...); });
  }

  /** Release all leases and end all waits with RL_E_CLOSED; the object stays valid. */
  void shutdown() noexcept { rl_client_shutdown(get()); }

  [[nodiscard]] rl_client* get() const noexcept { return handle_.get(); }

 protected:
  /** By `open`, which is rl_client_open() or rl_redlock_open(). */
  template <typename Open>
  client(const Open& open, std::string_view urls, const rl_client_options* options) {
    const detail::outcome outcome;
    handle_.reset(open(urls.data(), urls.size(), options, outcome));
    if (!handle_) outcome.raise();
  }

 private:
  attempt acquire_all_with(const names& all, wait_limit limit, const rl_acquire_options* options) {
    const auto acquire = [&](rl_client* handle, const char*, size_t, int64_t wait_ms,
                             const rl_acquire_options* chosen, rl_error* err) {
      return rl_acquire_all(handle, all.get(), wait_ms, chosen, err);
    };
    return detail::take(acquire, get(), {}, limit, options);
  }
  redlatch::lease attach_with(std::string_view name, std::string_view token, int64_t fence,
                              const rl_acquire_options* options) {
    const detail::outcome outcome;
    redlatch::lease attached(rl_lease_attach(get(), name.data(), name.size(), token.data(),
                                             token.size(), fence, options, outcome));
    if (attached.get() == nullptr) outcome.raise();
    return attached;
  }

  detail::owner<rl_client, rl_client_close> handle_;
};

/**
 * A client of several independent servers: a lock on most of them outlives the failure of the
 * others, as rl_redlock_open() says. Calls that need one server throw error RL_E_UNSUPPORTED.
 * Since: 0.1.
 */
class redlock : public client {
 public:
  /** Open one over the servers at `urls`, an odd number. @throws error RL_E_INVALID, .. */
  [[nodiscard]] static redlock open(const std::vector<std::string>& urls) {
    return redlock(urls, nullptr);
  }
  [[nodiscard]] static redlock open(const std::vector<std::string>& urls,
                                    const client_options& options) {
    return redlock(urls, options.get());
  }

 private:
  redlock(const std::vector<std::string>& urls, const rl_client_options* options)
      : client(rl_redlock_open, joined(urls), options) {}

  static std::string joined(const std::vector<std::string>& urls) {
    std::string text;
    for (const std::string& url : urls) text += url + '\n';
    return text;
  }
};

}  // namespace redlatch

#include "redlatch/jobs.hpp"   // IWYU pragma: export
#include "redlatch/mutex.hpp"  // IWYU pragma: export

#endif
#endif
