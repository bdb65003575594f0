// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "protocol/token.h"

#include <algorithm>
#include <cassert>
#include <charconv>

#include "base/limits.h"
#include "base/text.h"

namespace redlatch::protocol {

namespace {

constexpr std::string_view kBase64Url =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
// 128 bits leave four zero bits in the last of 22 digits. None of these is a lower-case hex digit,
// which tells our tokens from those of libraries that write as many.
constexpr std::string_view kLastOfCid = "AQgw";
constexpr size_t kFirstDigit = kTokenSize + 1;  // of the provisional time of a member
constexpr std::string_view kNoLimit = "9999999999999";

// `value` at the end of `width` characters, zeros before it.
void append_padded(std::string &out, uint64_t value, size_t width, int base) {
  char digits[24];
  const auto result = std::to_chars(digits, digits + sizeof digits, value, base);
  const auto size = static_cast<size_t>(result.ptr - digits);
  assert(size <= width && "scripts take tokens and members apart by position");
  out.append(width > size ? width - size : 0, '0').append(digits, size);
}

// Take `width` digits off `text`. All numbers on the wire are unsigned.
template <class Number>
bool take(std::string_view &text, size_t width, Number &number, int base = 10) {
  if (text.size() < width || text[0] == '-') return false;
  const char *end = text.data() + width;
  const auto result = std::from_chars(text.data(), end, number, base);
  text.remove_prefix(width);
  return result.ec == std::errc() && result.ptr == end;
}

constexpr char kAwaitsValue = 'v';

bool is_mode(char c) { return c == 'x' || c == 's' || c == 'u' || c == kAwaitsValue; }

Mode mode_of(char c) { return c == kAwaitsValue ? Mode::kWrite : static_cast<Mode>(c); }

}  // namespace

std::string make_cid(std::span<const uint8_t, 16> random) {
  std::string cid;
  uint32_t bits = 0;
  int held = 0;
  for (const uint8_t byte : random) {
    bits = bits << 8 | byte;
    for (held += 8; held >= 6; held -= 6) cid += kBase64Url[bits >> (held - 6) & 63];
  }
  cid += kBase64Url[bits << (6 - held) & 63];
  return cid;
}

std::string make_token(std::string_view cid, uint64_t rid, bool is_recallable) {
  assert(cid.size() == kCidSize && (!is_recallable || rid < kRecallable));
  if (is_recallable) rid |= kRecallable;
  std::string token;
  token.reserve(kTokenSize);
  token.append(cid);
  append_padded(token, rid, kTokenSize - kCidSize, 16);
  return token;
}

std::string make_member(std::string_view token, Mode mode, int64_t provisional_ms, int64_t wait_ms,
                        std::string_view owner) {
  std::string member;
  member.reserve(kMemberSize + owner.size());
  member.append(token).append(1, static_cast<char>(mode));
  append_padded(member, static_cast<uint64_t>(provisional_ms), 5, 10);
  if (wait_ms < 0 || wait_ms > kMaxWaitMs) {
    member.append(kNoLimit);
  } else {
    append_padded(member, static_cast<uint64_t>(wait_ms), 13, 10);
  }
  member.append(owner);
  return member;
}

std::string claim_of(int64_t permits, int64_t limit) {
  assert(permits >= 1 && permits <= limit);
  return std::to_string(permits) + "/" + std::to_string(limit);
}

int64_t permits_in(std::string_view claim) {
  int64_t permits = 0;
  const auto read = std::from_chars(claim.data(), claim.data() + claim.size(), permits);
  return read.ec == std::errc() && permits > 0 ? permits : 0;
}

int64_t limit_in(std::string_view claim) {
  const size_t slash = claim.find('/');
  return slash == std::string_view::npos ? 0 : permits_in(claim.substr(slash + 1));
}

void set_polls(std::string &member, bool polls) {
  static_assert(kProvisionalMs < 10'000);  // the provisional time has four digits at most
  assert(member.size() >= kMemberSize);
  assert(member[kFirstDigit] == '0' || member[kFirstDigit] == '+');
  member[kFirstDigit] = polls ? '+' : '0';
}

bool polls(std::string_view member) {
  return member.size() >= kMemberSize && member[kFirstDigit] == '+';
}

bool is_token(std::string_view value) {
  if (value.size() != kTokenSize) return false;
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  const auto cid = value.substr(0, kCidSize);
  const auto rid = value.substr(kCidSize);
  return cid.find_first_not_of(kBase64Url) == std::string_view::npos &&
         kLastOfCid.find(cid.back()) != std::string_view::npos &&
         std::all_of(rid.begin(), rid.end(), is_hex);
}

bool is_recallable(std::string_view token) {
  return token.size() == kTokenSize && token[kCidSize] > '7';
}

std::optional<QueueEntry> parse_member(std::string_view member) {
  const std::string_view token = member.substr(0, kTokenSize);
  if (member.size() < kMemberSize || !is_token(token)) return std::nullopt;
  if (!is_mode(member[kTokenSize])) return std::nullopt;
  return QueueEntry{token, mode_of(member[kTokenSize])};
}

void await_value(std::string &member) {
  assert(member.size() >= kMemberSize && mode_of(member[kTokenSize]) == Mode::kWrite);
  member[kTokenSize] = kAwaitsValue;
}

std::optional<Push> parse_push(std::string_view message) {
  if (message.empty()) return std::nullopt;
  const char kind = message[0];
  Push push{};
  message.remove_prefix(1);
  if (!take(message, 10, push.rid, 16)) return std::nullopt;
  push.is_recallable = (push.rid & kRecallable) != 0;
  push.rid &= kRecallable - 1;
  if (kind == 'n') {
    push.kind = Push::Kind::kHead;
    if (!take(message, 5, push.ms) || !message.empty()) return std::nullopt;
    return push;
  }
  if (kind == 'v') {
    push.kind = Push::Kind::kValue;
    return message.empty() ? std::optional(push) : std::nullopt;
  }
  if (kind == 'r') {
    push.kind = Push::Kind::kRecall;
    if (message.empty()) return push;
    if (!message.starts_with(':') || message.size() > 1 + kMaxReasonBytes) return std::nullopt;
    push.is_by_user = true;
    push.reason = message.substr(1);
    return push;
  }
  if (kind != 'g' || message.empty() || !is_mode(message[0])) return std::nullopt;
  push.kind = Push::Kind::kGrant;
  push.mode = mode_of(message[0]);
  message.remove_prefix(1);
  const size_t polls = message.starts_with('+') ? 1 : 0;  // see set_polls()
  message.remove_prefix(polls);
  if (!take(message, 5 - polls, push.ms) || !take(message, 16, push.fence) ||
      !take(message, 13, push.server_ms) || message.size() != 8 || push.fence > kMaxFence) {
    return std::nullopt;
  }
  push.key_digest = message;
  return push;
}

}  // namespace redlatch::protocol
