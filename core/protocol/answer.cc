// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "protocol/answer.h"

#include <algorithm>
#include <array>

#include "base/limits.h"
#include "base/text.h"
#include "protocol/token.h"

namespace redlatch::protocol {

namespace {

constexpr std::array<std::string_view, 12> kTransient = {
    "LOADING", "BUSY",     "OOM",         "READONLY", "MASTERDOWN", "NOREPLICAS",
    "MISCONF", "TRYAGAIN", "CLUSTERDOWN", "MOVED",    "ASK",        "UNKILLABLE"};
constexpr std::array<std::string_view, 3> kOfSlot = {"TRYAGAIN", "ASK", "MOVED"};
constexpr std::array<std::string_view, 4> kDenied = {"NOPERM", "NOAUTH", "WRONGPASS", "DENIED"};

template <size_t N>
bool is_one_of(const std::array<std::string_view, N> &words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

constexpr size_t kMaxShown = 300;  // of a server's text

Refusal nonsense(std::string_view what) {
  return Refusal{Refusal::Kind::kOther, "unexpected answer to " + std::string(what)};
}

// Servers word a refusal inside a script in their own ways: 7.0 "ERR The user executing the script
// can't run this command", 6.2 "ERR Error running script (call to ..): @user_script:1: -OOM ..", or
// "@user_script: 1: -OOM .." if the script returns what redis.pcall has caught.
bool mentions_denial(std::string_view text) {
  return text.find("NOPERM") != std::string_view::npos ||
         text.find("ACL failure") != std::string_view::npos ||
         text.find("The user executing the script can't") != std::string_view::npos;
}

std::string_view word_of(std::string_view text) {
  const bool is_wrapped =
      text.starts_with("ERR Error running script") || text.starts_with("@user_script:");
  const size_t inner = is_wrapped ? text.find(": -") : text.npos;
  if (inner != text.npos) text.remove_prefix(inner + 3);
  return text.substr(0, text.find(' '));
}

// A time that is only shown, limited so that sums and differences of two of them fit.
int64_t shown_ms(int64_t ms) { return std::clamp<int64_t>(ms, 0, kMaxServerMs); }

int64_t shown_count(int64_t count) { return std::max<int64_t>(count, 0); }

bool read_fence(const Reply &reply, int64_t &fence) {
  return parse_number(reply.text(), fence) && fence >= 0 && fence <= kMaxFence;
}

}  // namespace

bool is_unknown_script(const Reply &reply) {
  return reply.is_error() && word_of(reply.text()) == "NOSCRIPT";
}

bool is_of_replica(const Reply &reply) {
  const std::string_view word = word_of(reply.is_error() ? reply.text() : "");
  return word == "READONLY" || word == "MASTERDOWN";
}

bool lacks_replicas(const Reply &reply) {
  return reply.is_error() && word_of(reply.text()) == "NOREPLICAS";
}

bool is_not_primary(const Reply &reply) {
  if (!reply.is_error()) return false;
  const bool is_demoted = word_of(reply.text()) == "UNBLOCKED";
  return is_demoted || is_of_replica(reply) ||
         reply.text().find("WAIT cannot be used with replica") != std::string_view::npos;
}

Refusal refusal_of(const Reply &reply, std::string_view secret) {
  if (!reply.is_error()) return {};
  const std::string_view text = reply.text();
  const std::string_view word = word_of(text);
  // Before the cut, which could leave a part of the secret.
  Refusal refusal{Refusal::Kind::kOther, clean(cut(without(text, secret), kMaxShown))};
  if (word == "NOSCRIPT") {
    refusal.kind = Refusal::Kind::kNoScript;
  } else if (is_one_of(kTransient, word)) {
    refusal.kind = Refusal::Kind::kTransient;
    refusal.is_of_slot = is_one_of(kOfSlot, word);
  } else if (is_one_of(kDenied, word) || mentions_denial(text)) {
    refusal.kind = Refusal::Kind::kDenied;
  } else if (word == "WRONGTYPE") {
    refusal.kind = Refusal::Kind::kWrongType;
  }
  return refusal;
}

bool AcquireAnswer::is_shared() const { return !is_granted && holder == kShared; }

bool AcquireAnswer::has_permits() const {
  return !is_granted && holder.starts_with(kPermitsPrefix);
}

bool AcquireAnswer::is_capped() const {
  return has_permits() && std::count(holder.begin(), holder.end(), '/') > 1;
}

bool AcquireAnswer::is_wrong_type() const {
  return !type.empty() && type != "none" && type != "string" && type != "hash";
}

bool AcquireAnswer::is_foreign() const {
  return !is_granted && type != "none" && !is_token(holder) && !is_shared() && !has_permits();
}

bool AcquireAnswer::is_foreign_to(Format format) const {
  const bool is_of_others =
      traits(format).has_permits ? is_token(holder) || is_shared() : has_permits();
  return is_foreign() || is_of_others;
}

Refusal decode(const Reply &reply, AcquireAnswer &answer) {
  if (auto refusal = refusal_of(reply)) return refusal;
  const size_t count = reply.count();
  if ((count == 3 || count == 4) && reply.at(0).integer == 1) {
    answer.is_granted = true;
    answer.server_ms = reply.at(2).integer;
    if (count == 4) {
      answer.hold_count = std::max<int64_t>(reply.at(3).integer, 1);
      answer.fence_count = std::clamp<int64_t>(reply.at(3).integer, 0, kMaxFenceCount);
    }
    if (read_fence(reply.at(1), answer.fence) && answer.server_ms > 0) return {};
  } else if ((count == 9 || count == 10) && reply.at(0).integer == 0) {
    answer.pttl_ms = reply.at(1).integer;
    answer.server_ms = reply.at(2).integer;
    answer.ticket = reply.at(3).text();
    answer.rank = reply.at(4).integer;
    answer.key_digest = reply.at(5).text();
    answer.holder = reply.at(6).text();
    answer.type = reply.at(7).text();
    answer.has_more = (reply.at(8).integer & 1) != 0;
    answer.is_recalled = (reply.at(8).integer & 8) != 0;
    if (count == 10 && is_token(reply.at(9).text())) answer.reader = reply.at(9).text();
    if (answer.server_ms > 0) return {};
  } else if (count == 2 && reply.at(0).integer < 0) {
    answer.is_lost = reply.at(0).integer == -1;
    answer.is_deadlock = reply.at(0).integer == -2;
    answer.server_ms = reply.at(1).integer;
    if (answer.server_ms > 0) return {};
  }
  return nonsense("acquire");
}

Refusal decode(const Reply &reply, CountAnswer &answer) {
  if (auto refusal = refusal_of(reply)) return refusal;
  const auto is_number = [&reply](size_t i) { return reply.at(i).kind == Reply::Kind::kInteger; };
  if (reply.count() < 2 || !is_number(0) || !is_number(1) || reply.at(1).integer < 0) {
    return nonsense("a script");
  }
  answer.result = reply.at(0).integer;
  answer.server_ms = reply.at(1).integer;
  answer.has_more = (reply.at(2).integer & 1) != 0;
  answer.is_unnoted = (reply.at(2).integer & 4) != 0;
  answer.ends_ms = answer.attach_count = reply.at(2).integer;
  answer.wrong_type = reply.at(3).text();
  return {};
}

Refusal decode_vote(const Reply &reply, AcquireAnswer &answer) {
  answer.is_granted = reply.kind == Reply::Kind::kInteger && reply.integer == 1;
  return answer.is_granted ? Refusal() : decode(reply, answer);
}

namespace {

void read_cap(const Reply &reply, size_t place, InspectAnswer &answer) {
  answer.cap = std::clamp<int64_t>(reply.at(place).integer, -1, kMaxPermits);
  answer.cap_left_ms = std::clamp<int64_t>(reply.at(place + 1).integer, -1, kMaxServerMs);
}

// See once_begin.lua. Fields of other programs are left out, and periods that have ended.
void read_marks(const Reply &reply, InspectAnswer &answer) {
  for (size_t i = 0; i + 1 < reply.count(); i += 2) {
    std::string_view rest = reply.at(i + 1).text();
    const auto next = [&rest] {
      const std::string_view word = rest.substr(0, rest.find(' '));
      rest.remove_prefix(std::min(rest.size(), word.size() + 1));
      return word;
    };
    const std::string_view state = next();
    InspectAnswer::Mark mark{std::string(reply.at(i).text()), state == "d"};
    const bool is_mark = (state == "d" || state == "r") && parse_number(next(), mark.since_ms) &&
                         parse_number(next(), mark.tries) && parse_number(next(), mark.ends_ms);
    if (!is_mark || mark.ends_ms <= answer.server_ms) continue;
    mark.since_ms = shown_ms(mark.since_ms);
    mark.ends_ms = shown_ms(mark.ends_ms);
    mark.tries = shown_count(mark.tries);
    answer.marks.push_back(std::move(mark));
  }
}

}  // namespace

Refusal decode(const Reply &reply, InspectAnswer &answer) {
  if (auto refusal = refusal_of(reply)) return refusal;
  if (reply.count() < 11 || reply.at(0).integer <= 0) return nonsense("inspect");
  answer.server_ms = shown_ms(reply.at(0).integer);
  answer.type = reply.at(1).text();
  answer.value = reply.at(2).text();
  answer.pttl_ms = std::clamp<int64_t>(reply.at(3).integer, -2, kMaxServerMs);
  if (!read_fence(reply.at(4), answer.fence)) answer.fence = 0;
  answer.waiter_count = shown_count(reply.at(5).integer);
  const Reply &waiters = reply.at(6), &candidates = reply.at(12);
  for (size_t i = 0; i + 1 < waiters.count(); i += 2) {
    const auto waiting = parse_member(waiters.at(i).text());
    int64_t ticket_us = 0;
    if (!waiting || !parse_number(waiters.at(i + 1).text(), ticket_us)) continue;
    // The first of the candidates is the holder.
    answer.waiters.push_back({std::string(waiting->token), waiting->mode,
                              shown_ms(ticket_us / 1000), "",
                              std::string(candidates.at(1 + i / 2).text())});
  }
  answer.candidate = candidates.at(0).text();
  const Reply &info = reply.at(7);
  for (size_t i = 0; i + 1 < info.count(); i += 2) {
    const std::string_view field = info.at(i).text();
    const std::string_view value = info.at(i + 1).text();
    if (field == "who") answer.who = value;
    if (field == "label") answer.label = value;
    if (field == "id") answer.candidate = value;
    int64_t fence = 0;
    // The last one that was granted may have expired, and late copies may have granted another.
    if (field == "fence" && parse_number(value, fence) && fence <= kMaxFence) {
      answer.fence = std::max(answer.fence, fence);
    }
    int64_t since_ms = 0;
    if (field == "since" && parse_number(value, since_ms)) answer.since_ms = shown_ms(since_ms);
  }
  answer.holder_count = shown_count(reply.at(8).integer);
  const Reply &holders = reply.at(9);
  for (size_t i = 0; i + 1 < holders.count(); i += 2) {
    int64_t expiry_ms = 0;
    if (!parse_number(holders.at(i + 1).text(), expiry_ms)) continue;
    const std::string_view entry = holders.at(i).text();
    answer.holders.push_back({std::string(entry.substr(0, kTokenSize)), shown_ms(expiry_ms),
                              permits_in(entry.substr(std::min(entry.size(), kTokenSize)))});
  }
  const int64_t count = shown_count(reply.at(10).integer);
  if (!answer.has_permits()) answer.hold_count = count;
  if (reply.at(11).kind == Reply::Kind::kArray) {
    read_marks(reply.at(11), answer);
  } else if (reply.count() >= 13) {
    answer.used = count;
    if (answer.has_permits()) answer.limit = limit_in(answer.value);
    read_cap(reply, 11, answer);
  }
  return {};
}

Refusal decode_stats(const Reply &reply, InspectAnswer &answer) {
  if (auto refusal = refusal_of(reply)) return refusal;
  if (reply.count() < 6 || reply.at(0).integer <= 0) return nonsense("stats");
  answer.server_ms = shown_ms(reply.at(0).integer);
  answer.used = shown_count(reply.at(1).integer);
  answer.limit = shown_count(reply.at(2).integer);
  read_cap(reply, 3, answer);
  answer.waiter_count = shown_count(reply.at(5).integer);
  answer.type = answer.used > 0 ? "string" : "none";
  if (answer.used > 0) answer.value = kPermitsPrefix;
  return {};
}

Refusal decode(const Reply &reply, ListAnswer &answer) {
  if (auto refusal = refusal_of(reply)) return refusal;
  answer.cursor = reply.at(0).text();
  if (reply.count() != 2 || answer.cursor.empty()) return nonsense("list");
  answer.keys.clear();
  const Reply &keys = reply.at(1);
  for (size_t i = 0; i < keys.count(); i++) answer.keys.emplace_back(keys.at(i).text());
  return {};
}

constexpr size_t kFenceDigits = 16;

// A letter, the fence, and then the value; or the type, a NUL and the text.
std::string flight_text(const FlightValue &value, int64_t fence) {
  const std::string digits = std::to_string(fence);
  std::string text(1, value.is_failure ? 'e' : 'v');
  text.append(kFenceDigits - std::min(digits.size(), kFenceDigits), '0').append(digits);
  if (value.is_failure) text.append(value.type).append(1, '\0');
  return text.append(value.bytes);
}

Refusal decode(const Reply &reply, std::optional<FlightValue> &answer) {
  const size_t head = 1 + kFenceDigits;
  if (auto refusal = refusal_of(reply)) return refusal;
  std::string_view text = reply.text();
  FlightValue value;
  const bool is_ours = text.size() >= head && (text.front() == 'v' || text.front() == 'e') &&
                       parse_number(text.substr(1, kFenceDigits), value.fence);
  if (!is_ours) return {};
  value.is_failure = text.front() == 'e';
  text.remove_prefix(head);
  if (value.is_failure) {
    const size_t end = std::min(text.find('\0'), text.size());
    value.type = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  value.bytes = text;
  answer = std::move(value);
  return {};
}

bool is_lock_of_ours(const Reply &reply) {
  if (reply.is_error()) return false;
  return is_token(reply.text()) || reply.text() == kShared ||
         reply.text().starts_with(kPermitsPrefix);
}

std::string wrong_type_message(std::string_view name, std::string_view type) {
  return "the key of lock " + quoted(name) + " must be a string or a hash (got " +
         std::string(cut(type, 64)) + ")";
}

std::string refusal_message(std::string_view name, const Refusal &refusal) {
  const bool is_of_lock = refusal.kind == Refusal::Kind::kWrongType && !name.empty();
  if (!is_of_lock) return refusal.message;
  return "the keys beside that of lock " + quoted(name) +
         ", such as its queue, must have the types that redlatch gives them (got " +
         refusal.message + ")";
}

std::string name_text(std::string_view holder) { return std::string(kNameVersion).append(holder); }

std::string decode_name(const Reply &reply) {
  std::string_view text = reply.text();
  if (reply.is_error() || !text.starts_with(kNameVersion)) return {};
  text.remove_prefix(kNameVersion.size());
  return clean(text.substr(0, kMaxLabelBytes));
}

std::optional<Nanos> decode_time(const Reply &reply) {
  int64_t seconds = 0;
  int64_t micros = 0;
  const bool is_time = parse_number(reply.at(0).text(), seconds) &&
                       parse_number(reply.at(1).text(), micros) && seconds >= 0 &&
                       seconds < kMaxServerMs / 1000 && micros >= 0 && micros < 1'000'000;
  if (!is_time) return std::nullopt;
  return seconds * 1000 * kMs + micros * 1000;
}

std::string_view info_value(std::string_view info, std::string_view field) {
  while (!info.empty()) {
    const size_t end = std::min(info.find('\n'), info.size());
    std::string_view line = info.substr(0, end);
    info.remove_prefix(std::min(end + 1, info.size()));
    if (!line.starts_with(field) || line.substr(field.size(), 1) != ":") continue;
    line.remove_prefix(field.size() + 1);
    return line.substr(0, line.find('\r'));
  }
  return {};
}

}  // namespace redlatch::protocol
