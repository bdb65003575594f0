/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Jobs that run once in a period, values that one caller computes, and elections, for C++17: a part
 * of redlatch.hpp, which includes it.
 */
#ifndef REDLATCH_JOBS_HPP
#define REDLATCH_JOBS_HPP

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "redlatch/redlatch.hpp"

namespace redlatch {

/** How often a job runs: see rl_once_begin(). Since: 0.1. */
struct once_options {
  std::chrono::milliseconds every{};
  std::string key{};          ///< The text that names the period; empty: none.
  int32_t tries = 3;          ///< The most runs of a period.
  wait_limit wait = forever;  ///< For the end of another run.
};

/**
 * Run `job` if it has not succeeded in this period: see rl_once_begin(). An exception of `job` is
 * passed on, and leaves the next caller a try. @return true if it has run; false if it was skipped,
 * or another run took longer than `wait`. @throws error as rl_acquire(), rl_once_begin() and
 * rl_once_done(); after RL_E_LOST others may have run the job, too. Blocks: the wait, and the job.
 * Since: 0.1.
 */
template <typename Job>
bool once(client& of, std::string_view name, const once_options& options, Job&& job) {
  const attempt held = of.acquire(name, options.wait, acquire_options().max_local_handoffs(0));
  if (!held) return false;
  const detail::outcome outcome;
  if (!outcome.answer(rl_once_begin(held->get(), options.key.data(), options.key.size(),
                                    options.every.count(), options.tries, outcome),
                      RL_SKIPPED)) {
    return false;
  }
  std::forward<Job>(job)();
  outcome.require(rl_once_done(held->get(), options.key.data(), options.key.size(), outcome));
  return true;
}

/** The caller that computed the value of a flight has failed. Since: 0.1. */
class flight_error : public std::runtime_error {
 public:
  flight_error(std::string type, const std::string& text)
      : std::runtime_error(text), type_(std::move(type)) {}
  /** The type of its failure, as its language names it. */
  [[nodiscard]] const std::string& type() const noexcept { return type_; }

 private:
  std::string type_;
};

namespace detail {

using flight_request = owner<rl_request, rl_request_free>;

/** The value that `request` has found, or the failure, which is thrown. */
inline std::string landed(const rl_request* request) {
  std::string value = read_text([&](auto... to) { return rl_flight_value(request, to...); });
  if (rl_flight_has_failed(request) == 0) return value;
  throw flight_error(read_text([&](auto... to) { return rl_flight_failure_type(request, to...); }),
                     value);
}

inline void tell_failure(rl_lease* lease, std::string_view type, std::string_view text) noexcept {
  rl_flight_fail(lease, type.data(), type.size(), text.data(), text.size(), nullptr);
}

}  // namespace detail

/**
 * Get the value `name`: one caller of all clients computes it, by `compute`, which returns bytes in
 * a std::string; see rl_flight_start(). An exception of `compute` is passed on, and the waiting
 * callers get a flight_error. @throws error as rl_flight_start() and rl_flight_store(); RL_TIMEOUT
 * if the value is not there within `wait`. Blocks: `wait`, and `compute`. Since: 0.1.
 */
template <typename Compute>
std::string single_flight(client& of, std::string_view name, std::chrono::milliseconds ttl,
                          Compute&& compute, wait_limit wait = forever) {
  const detail::flight_request request(
      rl_flight_start(of.get(), name.data(), name.size(), wait.ms(), nullptr));
  const rl_status status = rl_request_wait(request.get(), -1);
  if (status != RL_OK) throw error(status, rl_request_message(request.get()));
  const lease held(rl_request_take_lease(request.get()));
  if (held.get() == nullptr) return detail::landed(request.get());
  std::string value;
  try {
    value = std::forward<Compute>(compute)();
  } catch (const std::exception& failure) {
    detail::tell_failure(held.get(), "std::exception", failure.what());
    throw;
  } catch (...) {
    detail::tell_failure(held.get(), "exception", "");
    throw;
  }
  const detail::outcome outcome;
  const rl_status stored =
      rl_flight_store(held.get(), value.data(), value.size(), ttl.count(), outcome);
  if (stored == RL_E_INVALID) {
    detail::tell_failure(held.get(), "redlatch::error", rl_error_message(outcome));
  }
  outcome.require(stored);
  return value;
}

/**
 * Campaign in the election `name` as the candidate `id`. The lease is the term: its fence() is the
 * number of the term, is_held() tells whether this candidate leads, and release() resigns. See
 * "elections" in redlatch.h. Otherwise as client::acquire(). Since: 0.1.
 */
[[nodiscard]] inline attempt campaign(client& of, std::string_view name, std::string_view id,
                                      wait_limit wait = forever, acquire_options options = {}) {
  options.set("id", id);
  return of.acquire(name, wait, options);
}

/** The leader of an election, as the server had it. Since: 0.1. */
struct leader_info {
  std::string id{};           ///< Empty: the election has no leader.
  std::int64_t term = 0;      ///< The number of the term; 0 without a leader.
  std::int64_t position = 0;  ///< For watch_leader().
};

namespace detail {

inline leader_info leader_in(const rl_info* info) {
  leader_info found{"", 0, rl_info_number(info, RL_PART_LOCK, 0, RL_FIELD_POSITION)};
  if (rl_info_count(info, RL_PART_HOLDER) > 0) {
    found.id = info_text(info, RL_PART_HOLDER, 0, RL_FIELD_CANDIDATE);
  }
  if (!found.id.empty()) found.term = rl_info_number(info, RL_PART_LOCK, 0, RL_FIELD_FENCE);
  return found;
}

}  // namespace detail

/** Read the leader of the election `name`: see rl_leader(). @throws error. Since: 0.1. */
[[nodiscard]] inline leader_info leader(client& of, std::string_view name) {
  const detail::outcome outcome;
  const detail::owner<rl_info, rl_info_free> info(
      rl_leader(of.get(), name.data(), name.size(), outcome));
  if (!info) outcome.raise();
  return detail::leader_in(info.get());
}
/**
 * Wait until the election has another leader than at the position `seen`, or no leader any more:
 * see rl_leader_watch(). -1: the present state is the answer. @throws error; RL_TIMEOUT if the
 * leader has not changed within `wait`. Since: 0.1.
 */
[[nodiscard]] inline leader_info watch_leader(client& of, std::string_view name,
                                              std::int64_t seen = -1, wait_limit wait = forever) {
  const detail::outcome outcome;
  const detail::owner<rl_info, rl_info_free> info(
      rl_leader_watch(of.get(), name.data(), name.size(), seen, wait.ms(), outcome));
  if (!info) outcome.raise();
  return detail::leader_in(info.get());
}

}  // namespace redlatch

#endif
