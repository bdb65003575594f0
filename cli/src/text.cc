// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <cstdio>

#include "handles.h"

namespace redlatch::cli {
namespace {

struct Character {
  std::size_t size;  // 0 = the bytes are not UTF-8.
  std::uint32_t code;
};

Character first_character(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {1, lead};
  const std::size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < size) return {0, 0};
  std::uint32_t code = lead & (0xffU >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xc0) != 0x80) return {0, 0};
    code = (code << 6) | (byte & 0x3f);
  }
  constexpr std::array<std::uint32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
  if (code < kSmallest[size] || code > 0x10ffff || is_surrogate) return {0, 0};
  return {size, code};
}

// Control characters, and those that change the direction of the text or break its line.
bool is_harmless(std::uint32_t code) {
  if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return false;
  if (code == 0x61c || code == 0x200e || code == 0x200f) return false;
  if (code >= 0x2028 && code <= 0x202e) return false;
  return code < 0x2066 || code > 0x2069;
}

void append_hex(std::string& out, const char* format, unsigned value) {
  std::array<char, 16> buffer{};
  std::snprintf(buffer.data(), buffer.size(), format, value);
  out += buffer.data();
}

void append_escaped_byte(std::string& out, char c) {
  switch (c) {
    case '\\':
      out += "\\\\";
      break;
    case '\n':
      out += "\\n";
      break;
    case '\r':
      out += "\\r";
      break;
    case '\t':
      out += "\\t";
      break;
    default:
      append_hex(out, "\\x%02x", static_cast<unsigned char>(c));
  }
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const Character character = first_character(text);
    if (character.size == 0) return false;
    text.remove_prefix(character.size);
  }
  return true;
}

std::string escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Character character = first_character(text);
    const std::size_t size = std::max<std::size_t>(character.size, 1);
    if (character.size > 0 && text[0] != '\\' && is_harmless(character.code)) {
      out += text.substr(0, size);
    } else {
      for (const char c : text.substr(0, size)) append_escaped_byte(out, c);
    }
    text.remove_prefix(size);
  }
  return out;
}

std::string without_secrets(const std::string& word) {
  const std::size_t end = word.find("://");
  if (end == std::string::npos) return word;
  // In front may be an option, as in --server=redis://..
  const std::size_t equals = word.substr(0, end).rfind('=');
  const std::size_t begin = equals == std::string::npos ? 0 : equals + 1;
  const std::string_view url = std::string_view(word).substr(begin);
  return word.substr(0, begin) + read_text([url](char* buffer, std::size_t size) {
           return rl_url_redact(url.data(), url.size(), buffer, size);
         });
}

bool is_url(std::string_view word) {
  constexpr std::array<std::string_view, 4> kSchemes = {"redis", "valkey", "unix", "embedded"};
  const std::size_t end = word.find("://");
  if (end == std::string_view::npos) return false;
  std::string scheme(word.substr(0, end));
  std::transform(scheme.begin(), scheme.end(), scheme.begin(),
                 [](unsigned char letter) { return std::tolower(letter); });
  return std::any_of(kSchemes.begin(), kSchemes.end(),
                     [&scheme](std::string_view begin) { return scheme.starts_with(begin); });
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kShownBytes = 256;
  return "'" + escaped(cut(text, kShownBytes)) + (text.size() > kShownBytes ? "'.." : "'");
}

std::string lock_words(std::string_view name) { return "lock " + in_quotes(name); }

std::string lock_words(const std::vector<std::string>& names) {
  if (names.size() == 1) return lock_words(names.front());
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "locks " : ", ") + in_quotes(name);
  return text;
}

std::string bold(const std::string& text, bool is_on) {
  return is_on ? "\x1b[1m" + text + "\x1b[0m" : text;
}

std::size_t column_count(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

std::string json_string(std::string_view text) {
  if (!is_utf8(text)) return json_string(escaped(text));
  std::string out = "\"";
  while (!text.empty()) {
    const Character character = first_character(text);
    if (text[0] == '"' || text[0] == '\\') {
      out += '\\';
      out += text[0];
    } else if (is_harmless(character.code)) {
      out += text.substr(0, character.size);
    } else {
      append_hex(out, "\\u%04x", character.code);  // all of them are up to U+FFFF
    }
    text.remove_prefix(character.size);
  }
  return out + "\"";
}

std::string_view cut(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  std::size_t end = max_bytes;
  // A character has at most three continuation bytes; more are no UTF-8 and need no care.
  for (int i = 0; i < 3 && end > 0; ++i) {
    if ((static_cast<unsigned char>(text[end]) & 0xc0) != 0x80) break;
    --end;
  }
  return text.substr(0, end);
}

std::string joined_command(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) {
    if (!out.empty()) out += ' ';
    if (!word.empty() && word.find_first_of(" \t\n\"'\\$`;&|<>()*?") == std::string::npos) {
      out += word;
      continue;
    }
    out += '\'';
    for (const char c : word) {
      if (c == '\'') {
        out += "'\\''";
      } else {
        out += c;
      }
    }
    out += '\'';
  }
  return out;
}

std::string not_one_of(std::string_view option, std::string_view value,
                       const std::vector<std::string>& known) {
  std::string text = std::string(option) + " must be ";
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (i > 0) text += i + 1 == known.size() ? " or " : ", ";
    text += known[i];
  }
  const std::string near = nearest(value, known);
  text += " (got " + in_quotes(without_secrets(std::string(value)));
  return text + (near.empty() ? ")" : "; did you mean '" + near + "'?)");
}

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
  std::string words;
  for (const std::string& one : known) words += (words.empty() ? "" : " ") + one;
  return read_text([&](char* buffer, std::size_t size) {
    return rl_nearest_word(word.data(), word.size(), words.data(), words.size(), buffer, size);
  });
}

}  // namespace redlatch::cli
