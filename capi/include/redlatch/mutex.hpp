/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * The lockables of redlatch for C++17, a part of redlatch.hpp, which includes it.
 */
#ifndef REDLATCH_MUTEX_HPP
#define REDLATCH_MUTEX_HPP

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "redlatch/redlatch.hpp"

namespace redlatch {

namespace detail {

/**
 * Support of std::lock() for a fair lock. std::lock() holds one lock, tries the next, and after a
 * refusal releases the first and waits for the second. A lock that is handed to the longest waiter
 * refuses every try while it has waiters, so threads that take several locks would exchange them
 * for a long time. A refused thread therefore sleeps for a moment before it waits, longer each
 * time: then no thread waits, and one of them gets all locks. One object for each thread.
 */
class crowd {
 public:
  static crowd& mine() noexcept {
    thread_local crowd one;
    return one;
  }

  void taken() noexcept { ++held_count_; }
  void given() noexcept { --held_count_; }

  void tried(bool is_taken) noexcept {
    // A refusal of a thread that holds nothing is an answer, not a crowd.
    was_refused_ = !is_taken && held_count_ > 0;
    if (is_taken) refusal_count_ = 0;
  }

  /** Before a wait: sleep if it follows a refusal and this thread holds no lock. */
  void step_aside() {
    refusal_count_ = was_refused_ ? refusal_count_ + 1 : 0;
    was_refused_ = false;
    if (refusal_count_ == 0 || held_count_ > 0) return;
    const int doubling_count = refusal_count_ < kMostDoublings ? refusal_count_ : kMostDoublings;
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    const uint64_t limit_us = uint64_t{100} << doubling_count;
    std::this_thread::sleep_for(std::chrono::microseconds((random_ >> 33) % limit_us));
  }

 private:
  static constexpr int kMostDoublings = 8;

  int held_count_ = 0;
  int refusal_count_ = 0;
  bool was_refused_ = false;
  uint64_t random_ = reinterpret_cast<uintptr_t>(this);
};

/** An error about the lock `name`, which is escaped and, if it is long, shortened. */
inline error error_of(rl_status status, const std::string& name, const char* what) {
  constexpr std::size_t kShownBytes = 64;
  constexpr const char* kHex = "0123456789abcdef";
  std::string text = "lock '";
  for (const char c : std::string_view(name).substr(0, kShownBytes)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f && c != '\'' && c != '\\') {
      text += c;
    } else {
      text.append("\\x").append(1, kHex[byte >> 4]).append(1, kHex[byte & 15]);
    }
  }
  return error(status, text + (name.size() > kShownBytes ? "'.." : "'") + what);
}

/** The leases by which the threads of this process hold one lock: one for each thread. */
class holdings {
 public:
  /** Take a lease from `acquire()`, an optional one. @return false: there was none. */
  template <typename Acquire>
  bool take(const std::string& name, const Acquire& acquire) {
    const std::thread::id self = std::this_thread::get_id();
    {
      const std::lock_guard<std::mutex> guard(mutex_);
      if (leases_.count(self) != 0) {
        throw error_of(RL_E_ALREADY_HELD, name, ": this thread has locked it already");
      }
    }
    std::optional<redlatch::lease> got = acquire();
    if (!got) return false;
    const std::lock_guard<std::mutex> guard(mutex_);
    leases_.emplace(self, std::move(*got));
    crowd::mine().taken();
    return true;
  }

  /** Release that of this thread, if it has one. */
  void give() noexcept {
    std::map<std::thread::id, redlatch::lease>::node_type held;
    {
      const std::lock_guard<std::mutex> guard(mutex_);
      held = leases_.extract(std::this_thread::get_id());
    }
    if (!held) return;
    crowd::mine().given();
    rl_release(held.mapped().get(), nullptr);
  }

  redlatch::lease& mine(const std::string& name) {
    const std::lock_guard<std::mutex> guard(mutex_);
    const auto held = leases_.find(std::this_thread::get_id());
    if (held == leases_.end()) {
      throw error_of(RL_E_NOT_HELD, name, " is not locked by this thread");
    }
    return held->second;
  }

 private:
  std::mutex mutex_;
  // More than one of a mutex only after a loss, when the next thread may have the lock before the
  // former has called unlock(). Guarded by mutex_.
  std::map<std::thread::id, redlatch::lease> leases_;
};

}  // namespace detail

/**
 * A TimedLockable over one lock: for std::unique_lock, std::scoped_lock and std::lock_guard.
 *
 * Many threads may share one, as with a std::mutex, and the thread that locked it unlocks it. To
 * pass a held lock between threads, use a lease. The lock can be lost while it is locked here:
 * lease() says so. After a loss unlock() is still required, and never touches the lock of another
 * holder.
 *
 * Every member that takes the lock throws error if it fails for another reason than a holder:
 * RL_E_UNAVAILABLE, RL_E_DENIED, ..; RL_E_ALREADY_HELD when this thread has locked it.
 * Since: 0.1.
 */
class mutex {
 public:
  /** `owner`, a client or a redlock, must outlive the mutex. `name` is any bytes. */
  mutex(client& owner, std::string_view name, acquire_options options = acquire_options())
      : owner_(&owner), name_(name), options_(std::move(options)) {}
  mutex(const mutex&) = delete;
  mutex& operator=(const mutex&) = delete;

  /** Lock, however long it takes. During an outage it keeps waiting. May be given to std::lock.
   */
  void lock() {
    detail::crowd::mine().step_aside();
    if (!take([&] { return owner_->acquire(name_, forever, options_); }))
      throw detail::error_of(RL_BUSY, name_, " is held by another holder");
  }

  /** Try once. @return false: another holder has the lock. */
  [[nodiscard]] bool try_lock() {
    const bool is_taken = take([&] { return owner_->try_acquire(name_, options_); });
    detail::crowd::mine().tried(is_taken);
    return is_taken;
  }

  /** Try for `duration`. @return false: the wait ran out. */
  template <typename Rep, typename Period>
  [[nodiscard]] bool try_lock_for(const std::chrono::duration<Rep, Period>& duration) {
    return take([&] { return owner_->acquire(name_, duration, options_); });
  }

  /** Try until `time`, of the steady clock only: jumps of the wall clock must not matter. */
  template <typename Duration>
  [[nodiscard]] bool try_lock_until(
      const std::chrono::time_point<std::chrono::steady_clock, Duration>& time) {
    return try_lock_for(time - std::chrono::steady_clock::now());
  }

  /**
   * Release. A loss or an unreachable server is not reported here: ask lease().check() before, or
   * use a lease. Does nothing if this thread has not locked it.
   */
  void unlock() noexcept { holdings_.give(); }

  /** The lease by which this thread holds it, until unlock(). @throws error RL_E_NOT_HELD. */
  [[nodiscard]] redlatch::lease& lease() { return holdings_.mine(name_); }

 private:
  template <typename Acquire>
  bool take(const Acquire& acquire) {
    return holdings_.take(name_, acquire);
  }

 protected:
  client* owner_;
  std::string name_;
  acquire_options options_;
  detail::holdings holdings_;
};

/**
 * A SharedTimedLockable over one read-write lock: a mutex, which writes, that std::shared_lock
 * locks to read. A reader may let lease() upgrade, and unlocks as before. Since: 0.1.
 */
class shared_mutex : public mutex {
 public:
  using mutex::mutex;

  /** Lock to read, however long it takes. */
  void lock_shared() {
    if (!take_shared([&] { return owner_->acquire_read(name_, forever, options_); }))
      throw detail::error_of(RL_BUSY, name_, " is held by another holder");
  }

  /** Try once to read. @return false: a writer holds the lock or waits for it. */
  [[nodiscard]] bool try_lock_shared() {
    return take_shared([&] { return owner_->try_acquire_read(name_, options_); });
  }

  /** Try to read for `duration`. @return false: the wait ran out. */
  template <typename Rep, typename Period>
  [[nodiscard]] bool try_lock_shared_for(const std::chrono::duration<Rep, Period>& duration) {
    return take_shared([&] { return owner_->acquire_read(name_, duration, options_); });
  }

  /** Try to read until `time`, of the steady clock only. */
  template <typename Duration>
  [[nodiscard]] bool try_lock_shared_until(
      const std::chrono::time_point<std::chrono::steady_clock, Duration>& time) {
    return try_lock_shared_for(time - std::chrono::steady_clock::now());
  }

  /** Release what this thread reads. Reports nothing, as unlock(). */
  void unlock_shared() noexcept { unlock(); }

 private:
  template <typename Acquire>
  bool take_shared(const Acquire& acquire) {
    return holdings_.take(name_, acquire);
  }
};

}  // namespace redlatch

#endif
