// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "base/text.h"

#include <array>
#include <cstring>

namespace redlatch {

namespace {

// strerror_r() of glibc returns the text, that of POSIX and musl 0.
[[maybe_unused]] const char *result_text(const char *text, std::span<char>) { return text; }
[[maybe_unused]] const char *result_text(int result, std::span<char> buffer) {
  return result == 0 ? buffer.data() : "unknown error";
}

}  // namespace

std::string quoted(std::string_view text, size_t limit) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "'";
  for (const char c : text.substr(0, limit)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f || c == '\'' || c == '\\') {
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  out += text.size() > limit ? "'.." : "'";
  return out;
}

namespace {

// The size of the character that `text` begins with; 0 if its bytes are not UTF-8.
size_t character_size(std::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < size) return 0;
  for (size_t i = 1; i < size; i++) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, halves of surrogate pairs, and numbers beyond the last character.
  if (lead == 0xe0 && byte(1) < 0xa0) return 0;
  if (lead == 0xed && byte(1) > 0x9f) return 0;
  if (lead == 0xf0 && byte(1) < 0x90) return 0;
  return lead == 0xf4 && byte(1) > 0x8f ? 0 : size;
}

}  // namespace

std::string clean(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t size = character_size(text);
    const auto first = static_cast<unsigned char>(text[0]);
    const bool is_control =
        first < 0x20 || first == 0x7f ||
        (first == 0xc2 && size == 2 && static_cast<unsigned char>(text[1]) < 0xa0);
    if (size == 0) {
      out += "\xef\xbf\xbd";
    } else if (is_control) {
      out += ' ';
    } else {
      out += text.substr(0, size);
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return out;
}

std::string without(std::string_view text, std::string_view secret) {
  std::string out;
  size_t at = secret.empty() ? text.npos : text.find(secret);
  for (; at != text.npos; at = text.find(secret)) {
    out.append(text.substr(0, at)).append("***");
    text.remove_prefix(at + secret.size());
  }
  return out.append(text);
}

std::string_view cut(std::string_view text, size_t limit) {
  if (text.size() <= limit) return text;
  const auto is_inside = [text](size_t i) {
    return (static_cast<unsigned char>(text[i]) & 0xc0) == 0x80;
  };
  size_t end = limit;
  // A character has at most three bytes after its first.
  while (end > 0 && limit - end < 3 && is_inside(end)) end--;
  return text.substr(0, end);
}

const char *error_text(int error, std::span<char> buffer) {
  return result_text(strerror_r(error, buffer.data(), buffer.size()), buffer);
}

std::string reason_of(int error) {
  std::array<char, 128> buffer{};
  return error_text(error, buffer);
}

std::string in_seconds(int64_t ms) {
  std::string text = std::to_string(ms / 1000);
  if (ms % 1000 != 0) {
    text += '.' + std::to_string(1000 + ms % 1000).substr(1);
    text.erase(text.find_last_not_of('0') + 1);
  }
  return text + " s";
}

}  // namespace redlatch
