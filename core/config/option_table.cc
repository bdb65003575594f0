// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "config/option_table.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <iterator>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "base/text.h"
#include "config/option_values.h"
#include "config/url_parts.h"

namespace redlatch::config {

namespace {

template <class Owner>
struct Row {
  Option option;
  std::variant<std::string Owner::*, Password Owner::*, Nanos Owner::*, int Owner::*, bool Owner::*,
               uint8_t Owner::*>
      field;
};

#define RL_ROW(Owner, scope, name, field, KIND, least, most, initial, words, ...) \
  Row<Owner>{{Scope::scope, #name, Kind::k##KIND, least, most, words}, &Owner::field},

constexpr auto kClientRows = std::to_array<Row<Settings>>({
#define RL_CLIENT_OPTION(...) RL_ROW(Settings, kClient, __VA_ARGS__)
#include "config/options.def"
});
constexpr auto kTlsRows = std::to_array<Row<TlsSettings>>({
#define RL_TLS_OPTION(...) RL_ROW(TlsSettings, kTls, __VA_ARGS__)
#include "config/options.def"
});
constexpr auto kSentinelRows = std::to_array<Row<SentinelSettings>>({
#define RL_SENTINEL_OPTION(...) RL_ROW(SentinelSettings, kSentinel, __VA_ARGS__)
#include "config/options.def"
});
constexpr auto kSentinelTlsRows = std::to_array<Row<TlsSettings>>({
#define RL_SENTINEL_TLS_OPTION(...) RL_ROW(TlsSettings, kSentinel, __VA_ARGS__)
#include "config/options.def"
});
constexpr auto kClusterRows = std::to_array<Row<ClusterSettings>>({
#define RL_CLUSTER_OPTION(...) RL_ROW(ClusterSettings, kCluster, __VA_ARGS__)
#include "config/options.def"
});
constexpr auto kQuorumRows = std::to_array<Row<QuorumSettings>>({
#define RL_QUORUM_OPTION(...) RL_ROW(QuorumSettings, kQuorum, __VA_ARGS__)
#include "config/options.def"
});
constexpr auto kAcquireRows = std::to_array<Row<AcquireSettings>>({
#define RL_ACQUIRE_OPTION(...) RL_ROW(AcquireSettings, kAcquire, __VA_ARGS__)
#define RL_LOCK_OPTION(...) RL_ROW(AcquireSettings, kLock, __VA_ARGS__)
#define RL_KIND_OPTION(...) RL_ROW(AcquireSettings, kKind, __VA_ARGS__)
#include "config/options.def"
});

#undef RL_ROW

template <class Rows>
constexpr auto find_in(const Rows &rows, std::string_view name) {
  const auto *row = std::find_if(rows.begin(), rows.end(),
                                 [name](const auto &one) { return one.option.name == name; });
  return row == rows.end() ? nullptr : row;
}

template <class Owner>
Outcome set(const Row<Owner> &row, Owner &settings, std::string_view value) {
  return std::visit([&](auto field) { return read_value(row.option, value, settings.*field); },
                    row.field);
}

// The last one counts, if there are a password and its file.
template <class Owner>
Outcome set_of_server(const Row<Owner> &row, Owner &settings, std::string_view value) {
  auto outcome = set(row, settings, value);
  if (row.option.kind == Kind::kPASSWORD) settings.password_file.clear();
  return outcome;
}

template <class Owner>
std::string show(const Row<Owner> &row, const Owner &settings) {
  return std::visit([&](auto field) { return shown_value(row.option, settings.*field); },
                    row.field);
}

// The first word leaves the format open, the others are those of formats.def.
constexpr bool are_words_of_formats(const Option &option) {
  std::string_view words = option.words;
  const auto take = [&words](std::string_view word) {
    const bool is_next = words.starts_with(word);
    words.remove_prefix(is_next ? word.size() : 0);
    return is_next;
  };
  if (!take("auto")) return false;
  for (const protocol::Format one : protocol::kNamedFormats) {
    if (!take(" ") || !take(protocol::traits(one).word)) return false;
  }
  return words.empty() && option.most == std::ssize(protocol::kNamedFormats);
}
static_assert(are_words_of_formats(find_in(kAcquireRows, "format")->option),
              "options.def and formats.def");

Outcome not_number(const Option &option, int64_t number) {
  auto outcome =
      must_be(option, option.kind == Kind::kSWITCH ? std::string("0 or 1") : allowed_of(option));
  const bool is_duration = option.kind == Kind::kDURATION;
  outcome.message += " (got " + std::to_string(number) + (is_duration ? " ms)" : ")");
  return outcome;
}

// The edit distance of two words; a swap of neighbours is one edit.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); i++) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); j++) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); i++) {
    for (size_t j = 1; j <= b.size(); j++) {
      const size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

template <class... Rows>
std::vector<std::string_view> names_of(const Rows &...rows) {
  std::vector<std::string_view> names;
  const auto add = [&names](const auto &some) {
    for (const auto &row : some) names.push_back(row.option.name);
  };
  (add(rows), ...);
  return names;
}

}  // namespace

const Option *find_option(std::string_view name) {
  if (const auto *row = find_in(kClientRows, name)) return &row->option;
  if (const auto *row = find_in(kTlsRows, name)) return &row->option;
  if (const auto *row = find_in(kSentinelRows, name)) return &row->option;
  if (const auto *row = find_in(kSentinelTlsRows, name)) return &row->option;
  if (const auto *row = find_in(kClusterRows, name)) return &row->option;
  if (const auto *row = find_in(kQuorumRows, name)) return &row->option;
  const auto *row = find_in(kAcquireRows, name);
  return row == nullptr ? nullptr : &row->option;
}

Outcome set_option(Settings &settings, std::string_view name, std::string_view value) {
  if (const auto *row = find_in(kClientRows, name)) return set_of_server(*row, settings, value);
  if (const auto *row = find_in(kTlsRows, name)) {
    settings.tls.is_asked_for = true;
    return set(*row, settings.tls, value);
  }
  if (const auto *row = find_in(kClusterRows, name)) {
    settings.cluster.is_asked_for = true;
    return set(*row, settings.cluster, value);
  }
  SentinelSettings &sentinel = settings.sentinel;
  const auto *of_tls = find_in(kSentinelTlsRows, name);
  const auto *row = find_in(kSentinelRows, name);
  if (row == nullptr && of_tls == nullptr) return unknown_option(name);
  sentinel.is_asked_for = true;
  if (row != nullptr) return set_of_server(*row, sentinel, value);
  const bool is_switch = of_tls->option.kind == Kind::kSWITCH;
  sentinel.tls.is_asked_for = sentinel.tls.is_asked_for || !is_switch;
  return set(*of_tls, sentinel.tls, value);
}

Outcome set_option(QuorumSettings &settings, std::string_view name, std::string_view value) {
  const auto *row = find_in(kQuorumRows, name);
  return row == nullptr ? unknown_option(name) : set(*row, settings, value);
}

Outcome set_option(AcquireSettings &settings, std::string_view name, std::string_view value) {
  const auto *row = find_in(kAcquireRows, name);
  if (row == nullptr) return unknown_option(name, true);
  auto outcome = set(*row, settings, value);
  if (!outcome.ok()) outcome.message += got(row->option, value);
  return outcome;
}

Outcome set_number(AcquireSettings &settings, std::string_view name, int64_t number) {
  const auto *row = find_in(kAcquireRows, name);
  if (row == nullptr) return unknown_option(name, true);
  const Option &option = row->option;
  const bool is_duration = option.kind == Kind::kDURATION;
  const bool is_none = is_duration && number == 0 && !option.words.empty();
  if (!is_none && (number < option.least || number > option.most)) {
    return not_number(option, number);
  }
  if (const auto *field = std::get_if<Nanos AcquireSettings::*>(&row->field)) {
    settings.**field = number * kMs;
  } else if (const auto *count = std::get_if<int AcquireSettings::*>(&row->field)) {
    settings.**count = static_cast<int>(number);
  } else if (const auto *is_on = std::get_if<bool AcquireSettings::*>(&row->field)) {
    settings.**is_on = number == 1;
  } else if (const auto *place = std::get_if<uint8_t AcquireSettings::*>(&row->field)) {
    settings.**place = static_cast<uint8_t>(number);
  }
  return {};
}

uint64_t bit_of(std::string_view name) {
  static_assert(kAcquireRows.size() < 64);
  const auto *row = find_in(kAcquireRows, name);
  return uint64_t{1} << (row == nullptr ? kAcquireRows.size()
                                        : static_cast<size_t>(row - kAcquireRows.data()));
}

Outcome check_ttl(int64_t ttl_ms) {
  AcquireSettings scratch;
  auto outcome = set_number(scratch, "ttl", ttl_ms);
  if (!outcome.ok()) outcome.message.replace(0, std::string_view("option 'ttl'").size(), "ttl");
  return outcome;
}

protocol::Mode mode_of(const AcquireSettings &settings) {
  static_assert(find_in(kAcquireRows, "mode")->option.words == "write read");
  return settings.mode_number == 1 ? protocol::Mode::kRead : protocol::Mode::kWrite;
}

std::string option_of(const Settings &settings, std::string_view name) {
  if (name == "url") return settings.shown_url;
  if (const auto *row = find_in(kClientRows, name)) return show(*row, settings);
  if (const auto *row = find_in(kTlsRows, name)) return show(*row, settings.tls);
  if (const auto *row = find_in(kSentinelRows, name)) return show(*row, settings.sentinel);
  if (const auto *row = find_in(kClusterRows, name)) return show(*row, settings.cluster);
  const auto *row = find_in(kSentinelTlsRows, name);
  return row == nullptr ? std::string() : show(*row, settings.sentinel.tls);
}

std::string option_of(const QuorumSettings &settings, std::string_view name) {
  const auto *row = find_in(kQuorumRows, name);
  return row == nullptr ? std::string() : show(*row, settings);
}

std::string option_of(const AcquireSettings &settings, std::string_view name) {
  const auto *row = find_in(kAcquireRows, name);
  return row == nullptr ? std::string() : show(*row, settings);
}

std::string nearest(std::span<const std::string_view> known, std::string_view word) {
  constexpr size_t kMaxDistance = 2;
  constexpr size_t kMaxWord = 32;  // the distance costs the product of both lengths
  if (word.size() > kMaxWord) return {};
  std::string_view best;
  size_t least = kMaxDistance + 1;
  for (const std::string_view one : known) {
    const size_t edits = distance(one, word);
    if (edits < least && 2 * edits < one.size()) {
      best = one;
      least = edits;
    }
  }
  return std::string(best);
}

namespace {

// The name in `known` that is meant by `name`, or empty. No edit leads from `timeout`, as other
// clients have it, or from `yield_ms`, as the setter in C is called, to the option.
std::string meant_by(std::string_view name, std::span<const std::string_view> known) {
  constexpr auto kOther = std::to_array<std::pair<std::string_view, std::string_view>>(
      {{"timeout", "command_timeout"}, {"yield_ms", "yield_for"}});
  for (const auto &[other, option] : kOther) {
    const bool is_known = std::find(known.begin(), known.end(), option) != known.end();
    if (name == other && is_known) return std::string(option);
  }
  return nearest(known, name);
}

}  // namespace

std::string nearest_option(std::string_view name) {
  return meant_by(name, names_of(kClientRows, kTlsRows, kSentinelRows, kSentinelTlsRows,
                                 kClusterRows, kQuorumRows));
}

Outcome unknown_option(std::string_view name, bool is_of_acquisition) {
  std::string text = "unknown option";
  if (is_option_name(name)) text += " " + quoted(name);
  const auto known = is_of_acquisition ? names_of(kAcquireRows)
                                       : names_of(kClientRows, kTlsRows, kSentinelRows,
                                                  kSentinelTlsRows, kClusterRows);
  const std::string near = is_of_acquisition ? meant_by(name, known) : nearest_option(name);
  const Option *other = find_option(name);
  if (other != nullptr && other->is_of_acquisitions() != is_of_acquisition) {
    const bool is_of_quorum = other->scope == Scope::kQuorum;
    text += is_of_quorum        ? ": it is an option of a Redlock"
            : is_of_acquisition ? ": it is an option of a client"
                                : ": it is an option of an acquisition";
    return failure(Status::kInvalid, text);
  }
  if (!near.empty()) return failure(Status::kInvalid, text + " (did you mean '" + near + "'?)");
  for (const std::string_view one : known) {
    text += (one == known.front() ? " (known are " : ", ") + std::string(one);
  }
  text += is_of_acquisition ? ")" : "; for those of a Redlock see docs/options.md)";
  return failure(Status::kInvalid, text);
}

}  // namespace redlatch::config
