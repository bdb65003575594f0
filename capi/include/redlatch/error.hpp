/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * Errors of redlatch for C++17, a part of redlatch.hpp, which includes it.
 */
#ifndef REDLATCH_ERROR_HPP
#define REDLATCH_ERROR_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include "redlatch/redlatch.h"

namespace redlatch {

/** A failure: the status, and the library's message as what(). Since: 0.1. */
class error : public std::runtime_error {
 public:
  /** An empty `message` becomes the sentence of rl_status_text(). */
  error(rl_status status, const std::string& message)
      : std::runtime_error(message.empty() ? rl_status_text(status) : message), status_(status) {}

  /** The status, such as RL_E_LOST. Branch on it; the text of what() may change. */
  [[nodiscard]] rl_status status() const noexcept { return status_; }

  /** True if the status has any of the `trait` bits: RL_MAYBE_APPLIED, RL_RETRYABLE. */
  [[nodiscard]] bool is(int32_t trait) const noexcept { return rl_status_is(status_, trait) != 0; }

 private:
  rl_status status_;
};

namespace detail {

template <auto Free>
struct deleter {
  template <typename Handle>
  void operator()(Handle* handle) const noexcept {
    Free(handle);
  }
};

template <typename Handle, auto Free>
using owner = std::unique_ptr<Handle, deleter<Free>>;

/** The rl_error of one call: converts to rl_error*, and throws the failure of the call. */
class outcome {
 public:
  outcome() : err_(rl_error_new()) {
    // Without it the reason of a NULL handle would be unknown.
    if (!err_) throw error(RL_E_NO_MEMORY, {});
  }

  operator rl_error*() const noexcept { return err_.get(); }
  [[nodiscard]] rl_status status() const noexcept { return rl_error_status(err_.get()); }
  [[noreturn]] void raise() const { throw error(status(), rl_error_message(err_.get())); }
  void require(rl_status status) const {
    if (status != RL_OK) raise();
  }
  /** True if `status` is RL_OK; false for `no` and `no_either`; any other status is thrown. */
  [[nodiscard]] bool answer(rl_status status, rl_status no, rl_status no_either = RL_OK) const {
    if (status == RL_OK) return true;
    if (status != no && status != no_either) raise();
    return false;
  }

 private:
  owner<rl_error, rl_error_free> err_;
};

/** Return a text that `read` writes to a buffer; `read` returns the full length. */
template <typename Read>
std::string read_text(const Read& read) {
  std::string text(255, '\0');
  std::size_t size = read(text.data(), text.size() + 1);
  while (size > text.size()) {
    text.resize(size);
    size = read(text.data(), text.size() + 1);
  }
  text.resize(size);
  return text;
}

template <typename Handle>
Handle* require_memory(Handle* handle) {
  if (handle == nullptr) throw error(RL_E_NO_MEMORY, {});
  return handle;
}

/** A value as rl_acquire_options_set() reads it. */
inline std::string text_of(std::chrono::milliseconds value) {
  return std::to_string(value.count()) + "ms";
}
inline std::string text_of(int32_t value) { return std::to_string(value); }
inline std::string_view text_of(bool is_on) { return is_on ? "yes" : "no"; }
inline std::string_view text_of(std::string_view value) { return value; }

}  // namespace detail

}  // namespace redlatch

#endif
