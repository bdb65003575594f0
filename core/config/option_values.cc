// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "config/option_values.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/text.h"
#include "config/url_parts.h"
#include "host/files.h"

namespace redlatch::config {

namespace {

struct Unit {
  std::string_view name;
  int64_t ms;
  std::string_view one, many;  // in messages
};
constexpr std::array<Unit, 5> kUnits = {{{"d", 86'400'000, " day", " days"},
                                         {"h", 3'600'000, " hour", " hours"},
                                         {"m", 60'000, " minute", " minutes"},
                                         {"s", 1000, " s", " s"},
                                         {"ms", 1, " ms", " ms"}}};

std::string span_text(int64_t ms) {
  for (const Unit &unit : kUnits) {
    if (ms == 0 || ms % unit.ms != 0) continue;
    return std::to_string(ms / unit.ms) + std::string(ms == unit.ms ? unit.one : unit.many);
  }
  return std::to_string(ms) + " ms";
}

size_t digit_count(std::string_view text) {
  return std::min(text.find_first_not_of("0123456789"), text.size());
}

// 500ms, 2s, 5m, 1h, 7d. Too large a number is the largest.
std::optional<int64_t> parse_ms(std::string_view text) {
  const size_t digits = digit_count(text);
  if (digits == 0) return std::nullopt;
  for (const Unit &unit : kUnits) {
    if (unit.name != text.substr(digits)) continue;
    int64_t count = 0;
    const bool is_small =
        parse_number(text.substr(0, digits), count) && count <= INT64_MAX / unit.ms;
    return is_small ? count * unit.ms : INT64_MAX;
  }
  return std::nullopt;
}

// The place of `word` in a list with single spaces.
std::optional<int> place_of(std::string_view words, std::string_view word) {
  for (int place = 0; !words.empty(); place++) {
    const std::string_view one = words.substr(0, words.find(' '));
    if (one == word) return place;
    words.remove_prefix(std::min(one.size() + 1, words.size()));
  }
  return std::nullopt;
}

std::string word_at(std::string_view words, int place) {
  assert(place >= 0 && place <= std::count(words.begin(), words.end(), ' '));
  for (; place > 0; place--) words.remove_prefix(std::min(words.find(' '), words.size() - 1) + 1);
  return std::string(words.substr(0, words.find(' ')));
}

// "a, b or c"
std::string list_of(std::string_view words) {
  std::string list;
  while (!words.empty()) {
    const std::string_view one = words.substr(0, words.find(' '));
    words.remove_prefix(std::min(one.size() + 1, words.size()));
    if (!list.empty()) list += words.empty() ? " or " : ", ";
    list += one;
  }
  return list;
}

bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

Outcome wrong(const Option &option, const std::string &what) {
  return failure(Status::kInvalid, "option " + quoted(option.name) + what);
}

// Some users give the key itself instead of its file.
Outcome wrong_path(const Option &option, std::string_view path, const std::string &what) {
  return wrong(option, (is_shown_path(path) ? ": " + quoted(path, 256) : std::string()) + what);
}

// Made absolute: each connection attempt reads the file, and the working directory may change.
Outcome read_path(const Option &option, std::string_view value, std::string &target) {
  assert(value.find('\0') == std::string_view::npos && "open() would take the text before it");
  std::string path(value);
  FileKind kind{};
  if (const int error = look_at_file(path, kind); error != 0) {
    return wrong_path(option, value, " cannot be read: " + reason_of(error));
  }
  const bool may_be_folder = option.kind == Kind::kFILE_OR_FOLDER;
  if (kind != FileKind::kFile && !(may_be_folder && kind == FileKind::kFolder)) {
    return wrong_path(option, value,
                      may_be_folder ? " must be a file or a folder" : " must be a file");
  }
  target = std::move(path);
  const int error = make_absolute(target);
  return error == 0 ? Outcome{} : wrong_path(option, value, ": " + reason_of(error));
}

bool is_size_good(const Option &option, std::string_view value) {
  const auto size = static_cast<int64_t>(value.size());
  return size >= option.least && size <= option.most;
}

bool is_text_good(const Option &option, std::string_view value) {
  if (!is_size_good(option, value)) return false;
  switch (option.kind) {
    case Kind::kPREFIX:  // a brace would move the hash tag
      return value.find_first_of("{}") == std::string_view::npos;
    case Kind::kPRINTABLE:  // the server refuses other client names
      return is_printable(value);
    case Kind::kHOST:  // with a leading dot OpenSSL would accept any name in that domain
      return !value.starts_with('.') && (is_host(value) || is_ipv6(value));
    case Kind::kPROGRAM:  // the supervisor runs in another folder
      return value.starts_with('/') && value.find('\0') == std::string_view::npos;
    case Kind::kFILE:
    case Kind::kFILE_OR_FOLDER:
    case Kind::kPASSWORD_FILE:
      return value.find('\0') == std::string_view::npos;
    default:
      return true;
  }
}

}  // namespace

int make_absolute(std::string &path) {
  if (path.empty()) return EINVAL;
  if (path.front() == '/') return 0;
  std::string folder;
  if (const int error = working_folder(folder); error != 0) return error;
  path.insert(0, folder + "/");
  return 0;
}

std::string allowed_of(const Option &option) {
  const std::string most = std::to_string(option.most);
  const std::string bytes =
      (option.least == 0 ? "at most " : std::to_string(option.least) + " to ") + most + " bytes";
  switch (option.kind) {
    case Kind::kDURATION:
      return (option.words.empty() ? "" : std::string(option.words) + " or ") +
             span_text(option.least) + " to " + span_text(option.most);
    case Kind::kCOUNT:
      return std::to_string(option.least) + (option.most == option.least + 1 ? " or " : " to ") +
             most;
    case Kind::kSWITCH:
      return "yes or no";
    case Kind::kCHOICE:
      return list_of(option.words);
    case Kind::kPREFIX:
      return bytes + " without braces";
    case Kind::kPRINTABLE:
      return bytes + " of printable ASCII without spaces";
    case Kind::kHOST:
      return "a host name or an IP address";
    case Kind::kPROGRAM:
      return "the absolute path of a program, " + bytes;
    case Kind::kFILE:
    case Kind::kFILE_OR_FOLDER:
    case Kind::kPASSWORD_FILE:
      return "a path of " + bytes;
    default:
      return bytes;
  }
}

Outcome must_be(const Option &option, const std::string &allowed) {
  return wrong(option, " must be " + allowed);
}

Outcome read_value(const Option &option, std::string_view value, Nanos &target) {
  constexpr size_t kMaxDigits = 9;
  const bool is_word = !option.words.empty() && value == option.words;
  const bool is_negative = value.starts_with('-') && parse_ms(value.substr(1));
  const auto ms = is_negative ? -1 : is_word ? 0 : parse_ms(value);
  const bool is_number = !value.empty() && digit_count(value) == value.size();
  if (!ms && is_number && value.size() <= kMaxDigits && value.front() != '0') {
    const std::string number(value);
    return must_be(option, "a duration with a unit, such as " + number + "ms or " + number + "s");
  }
  if (!ms) return must_be(option, allowed_of(option) + ", such as 500ms, 2s or 1m");
  // 0 in any unit; the typed setters of acquisitions have no other way to say the word.
  const bool may_be_0 = option.words == "0" || option.is_of_acquisitions();
  const bool is_none = is_word || (*ms == 0 && may_be_0 && !option.words.empty());
  if (!is_none && (*ms < option.least || *ms > option.most)) {
    return must_be(option, allowed_of(option));
  }
  target = *ms * kMs;
  return {};
}

Outcome read_value(const Option &option, std::string_view value, int &target) {
  int number = 0;
  if (!parse_number(value, number) || number < option.least || number > option.most) {
    return must_be(option, allowed_of(option));
  }
  target = number;
  return {};
}

Outcome read_value(const Option &option, std::string_view value, bool &target) {
  const auto place = place_of(option.words, value);
  if (!place) return must_be(option, allowed_of(option));
  target = *place == 1;
  return {};
}

Outcome read_value(const Option &option, std::string_view value, uint8_t &target) {
  const auto place = place_of(option.words, value);
  if (!place) return must_be(option, allowed_of(option));
  target = static_cast<uint8_t>(*place);
  return {};
}

Outcome read_value(const Option &option, std::string_view value, std::string &target) {
  if (!is_text_good(option, value)) return must_be(option, allowed_of(option));
  if (option.kind == Kind::kFILE || option.kind == Kind::kFILE_OR_FOLDER) {
    return read_path(option, value, target);
  }
  target = value;
  return {};
}

Outcome read_value(const Option &option, std::string_view value, Password &target) {
  if (!is_text_good(option, value)) return must_be(option, allowed_of(option));
  target = value;
  return {};
}

std::string shown_value(const Option &option, Nanos value) {
  const bool is_word = value == 0 && !option.words.empty();
  return is_word ? std::string(option.words) : std::to_string(value / kMs) + "ms";
}

// A default below the range: the library chooses.
std::string shown_value(const Option &option, int value) {
  return value < option.least ? std::string() : std::to_string(value);
}

std::string shown_value(const Option &option, bool value) {
  return word_at(option.words, value ? 1 : 0);
}

std::string shown_value(const Option &option, uint8_t value) {
  return word_at(option.words, value);
}

std::string shown_value(const Option &option, const std::string &value) {
  return option.kind == Kind::kPASSWORD_FILE ? std::string() : value;
}

std::string shown_value(const Option & /*option*/, const Password & /*value*/) { return {}; }

std::string got(const Option &option, std::string_view value) {
  constexpr size_t kMaxShown = 32;
  switch (option.kind) {
    case Kind::kPRIVATE:
    case Kind::kPASSWORD:
    case Kind::kPASSWORD_FILE:
    case Kind::kFILE:  // some users give the key itself
    case Kind::kFILE_OR_FOLDER:
      return {};
    case Kind::kPROGRAM:
      if (!is_shown_path(value)) return {};
      break;
    case Kind::kTEXT:
    case Kind::kPREFIX:
    case Kind::kPRINTABLE:
      if (is_size_good(option, value)) break;
      return " (got " + std::to_string(value.size()) + " bytes)";
    default:
      break;
  }
  // It may be a URL with its password, or other options as well.
  if (value.find_first_of("@=") != std::string_view::npos) return {};
  return " (got " + quoted(value, kMaxShown) + ")";
}

bool is_shown_value(const Option &option, std::string_view value) {
  constexpr size_t kMaxDigits = 15;
  const std::string_view behind = value.substr(digit_count(value));
  const bool is_number = behind.size() < value.size() && value.size() <= kMaxDigits;
  int number = 0;
  switch (option.kind) {
    case Kind::kDURATION:
      return (is_number && (behind.empty() || parse_ms(value))) ||
             (!value.empty() && value == option.words);
    case Kind::kCOUNT:
      return parse_number(value, number) && number >= 0 && number <= kMaxDatabase;
    case Kind::kSWITCH:
    case Kind::kCHOICE:
      return place_of(option.words, value).has_value();
    case Kind::kHOST:
      return is_host(value);
    case Kind::kTEXT:
    case Kind::kPREFIX:
    case Kind::kPRINTABLE:
      return is_plain_value(value);
    case Kind::kPRIVATE:
    case Kind::kPASSWORD:
      return false;
    default:  // some users give the secret itself instead of its file
      return is_shown_path(value);
  }
}

}  // namespace redlatch::config
