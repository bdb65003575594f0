// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Password: text of which no copy is left in memory that is freed.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace redlatch {

// Overwrite the whole buffer of `text`, also what is behind its end. It is empty afterwards.
inline void wipe(std::string &text) noexcept {
  text.resize(text.capacity());
  explicit_bzero(text.data(), text.size());
  text.clear();
}

// Make room for `more` bytes. A buffer that becomes too small is wiped.
inline void grow(std::string &text, size_t more) {
  if (text.capacity() - text.size() >= more) return;
  std::string larger;
  larger.reserve(std::max(text.size() + more, 2 * text.capacity()));
  larger = text;
  text.swap(larger);
  wipe(larger);
}

// Remove the first bytes. The rest moves to the front, and what it leaves is overwritten.
inline void drop_front(std::string &text, size_t count) noexcept {
  const size_t kept = text.size() - count;
  std::memmove(text.data(), text.data() + count, kept);
  explicit_bzero(text.data() + kept, count);
  text.resize(kept);
}

// Wipes `text` when it ends, in whatever way.
class WipeAtEnd {
 public:
  explicit WipeAtEnd(std::string &text) noexcept : text_(text) {}
  ~WipeAtEnd() { wipe(text_); }
  WipeAtEnd(const WipeAtEnd &) = delete;
  WipeAtEnd &operator=(const WipeAtEnd &) = delete;

 private:
  std::string &text_;
};

// Short text is in the object itself, which a move would leave behind.
class Password {
 public:
  Password() = default;
  Password(std::string_view text) : text_(text) {}
  Password(const char *text) : text_(text) {}
  Password(const std::string &text) : text_(text) {}
  Password(const Password &) = default;
  Password(Password &&other) noexcept { text_.swap(other.text_); }
  Password &operator=(Password other) noexcept {
    text_.swap(other.text_);
    return *this;
  }
  ~Password() { wipe(text_); }

  operator std::string_view() const { return text_; }
  bool empty() const { return text_.empty(); }
  size_t size() const { return text_.size(); }
  void clear() noexcept { wipe(text_); }
  void append(std::string_view more) {
    grow(text_, more.size());
    text_ += more;
  }
  // Keep the first bytes.
  void cut(size_t size) noexcept {
    explicit_bzero(text_.data() + size, text_.size() - size);
    text_.resize(size);
  }
  bool operator==(const Password &) const = default;
  bool operator==(std::string_view other) const { return text_ == other; }
  bool operator==(const char *other) const { return text_ == other; }

 private:
  std::string text_;
};

}  // namespace redlatch
