// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "protocol/slots.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/limits.h"
#include "base/random.h"
#include "base/text.h"
#include "protocol/token.h"

namespace redlatch::protocol {

namespace {

constexpr int64_t kMaxPort = 65'535;
constexpr int kMaxDraws = 1'000'000;

constexpr std::array<uint16_t, 256> kCrcOfByte = [] {
  std::array<uint16_t, 256> table{};
  for (unsigned byte = 0; byte < 256; byte++) {
    unsigned crc = byte << 8;
    for (int bit = 0; bit < 8; bit++) crc = crc << 1 ^ ((crc & 0x8000) != 0 ? 0x1021U : 0U);
    table[byte] = static_cast<uint16_t>(crc);
  }
  return table;
}();

uint16_t crc16(std::string_view text) {
  unsigned crc = 0;
  for (const char c : text) {
    crc = (crc << 8 ^ kCrcOfByte[(crc >> 8 ^ static_cast<uint8_t>(c)) & 0xff]) & 0xffff;
  }
  return static_cast<uint16_t>(crc);
}

// A server may be hostile: its text is used as a host only if a URL could have named it.
bool is_host(std::string_view text) {
  return !text.empty() && text.size() <= kMaxHostBytes &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return c > ' ' && c < 0x7f &&
                  std::string_view("/@,[]").find(c) == std::string_view::npos;
         });
}

// A node that does not know its own name gives '' or '?': it has that by which it was reached.
bool read_address(std::string_view host, int64_t port, const HostPort &asked, HostPort &address) {
  if (host.empty() || host == "?") host = asked.host;
  if (!is_host(host) || port < 1 || port > kMaxPort) return false;
  address = HostPort{std::string(host), std::to_string(port)};
  return true;
}

bool read_range(const Reply &reply, const HostPort &asked, SlotRange &range) {
  const auto is_slot = [](const Reply &value) {
    return value.kind == Reply::Kind::kInteger && value.integer >= 0 &&
           value.integer < static_cast<int64_t>(kSlotCount);
  };
  const Reply &first = reply.at(0);
  const Reply &last = reply.at(1);
  if (!is_slot(first) || !is_slot(last) || first.integer > last.integer) return false;
  const Reply &host = reply.at(2).at(0);
  const Reply &port = reply.at(2).at(1);
  const bool is_text = host.kind == Reply::Kind::kText || host.kind == Reply::Kind::kNil;
  if (reply.at(2).count() < 2 || !is_text || port.kind != Reply::Kind::kInteger) return false;
  range.first = static_cast<uint16_t>(first.integer);
  range.last = static_cast<uint16_t>(last.integer);
  return read_address(host.text(), port.integer, asked, range.primary);
}

// "<slot> <host>:<port>", where an IPv6 host has no brackets.
bool read_target(std::string_view text, const HostPort &asked, Redirect &redirect) {
  const size_t space = text.find(' ');
  const size_t colon = text.rfind(':');
  if (space == text.npos || colon == text.npos || colon < space) return false;
  const std::string_view host = text.substr(space + 1, colon - space - 1);
  int64_t port = 0;
  return parse_number(text.substr(0, space), redirect.slot) && redirect.slot < kSlotCount &&
         parse_number(text.substr(colon + 1), port) && read_address(host, port, asked, redirect.to);
}

// Servers: 7.0 "ERR Script attempted to ..", Valkey "ERR Attempted to ..". Our own error about a
// fence quotes a key, which may have any name.
bool is_non_local(std::string_view text) {
  return text.find("ttempted to access a non local key") != text.npos &&
         !text.starts_with("ERR the fence key");
}

}  // namespace

std::string_view hash_tag(std::string_view key) {
  const size_t open = key.find('{');
  if (open == key.npos) return key;
  const size_t close = key.find('}', open + 1);
  if (close == key.npos || close == open + 1) return key;
  return key.substr(open + 1, close - open - 1);
}

uint16_t slot_of(std::string_view key) { return crc16(hash_tag(key)) % kSlotCount; }

bool read_slots(const Reply &reply, const HostPort &asked, std::vector<SlotRange> &ranges) {
  if (reply.kind != Reply::Kind::kArray) return false;
  std::vector<SlotRange> found(reply.count());
  for (size_t i = 0; i < found.size(); i++) {
    if (!read_range(reply.at(i), asked, found[i])) return false;
  }
  std::sort(found.begin(), found.end(),
            [](const SlotRange &a, const SlotRange &b) { return a.first < b.first; });
  const auto overlap = [](const SlotRange &a, const SlotRange &b) { return b.first <= a.last; };
  if (std::adjacent_find(found.begin(), found.end(), overlap) != found.end()) return false;
  ranges = std::move(found);
  return true;
}

Redirect read_redirect(const Reply &reply, const HostPort &asked) {
  using Kind = Redirect::Kind;
  if (!reply.is_error()) return {};
  const std::string_view text = reply.text();
  const size_t space = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, space);
  if (word == "MOVED" || word == "ASK") {
    Redirect redirect{word == "ASK" ? Kind::kAsk : Kind::kMoved};
    const bool is_good =
        space < text.size() && read_target(text.substr(space + 1), asked, redirect);
    return is_good ? redirect : Redirect();
  }
  if (word == "TRYAGAIN") return {Kind::kTryAgain};
  constexpr std::array<std::string_view, 4> kDownWords = {"CLUSTERDOWN", "MASTERDOWN", "READONLY",
                                                          "LOADING"};
  if (std::find(kDownWords.begin(), kDownWords.end(), word) != kDownWords.end()) {
    return {Kind::kDown};
  }
  if (is_non_local(text)) return {Kind::kNonLocal};
  return {};
}

std::string make_cid_within(const std::string &prefix, std::span<const SlotRange> own,
                            std::span<const uint8_t, 16> random) {
  Entropy sequence(0);
  for (int i = 0; i < kMaxDraws && !own.empty(); i++) {
    std::array<uint8_t, 16> draw{};
    const std::array<uint64_t, 2> mask = {sequence.next(), sequence.next()};
    for (size_t k = 0; k < draw.size(); k++) {
      draw[k] = static_cast<uint8_t>(random[k] ^ mask[k / 8] >> k % 8 * 8);
    }
    std::string cid = make_cid(draw);
    const uint16_t slot = slot_of(prefix + cid);
    const auto has_slot = [slot](const SlotRange &range) { return range.contains(slot); };
    if (std::any_of(own.begin(), own.end(), has_slot)) return cid;
  }
  return {};
}

Outcome check_cluster_name(std::string_view name_space, std::string_view name, Format format) {
  const std::string key = std::string(name_space).append(name);
  const std::string_view refused = traits(format).has_reader_key ? "{}" : "}";
  const bool has_tag = hash_tag(key).size() < key.size();
  if (has_tag || key.find_first_of(refused) == key.npos) return {};
  return failure(Status::kInvalid, "name must have a hash tag such as '{a}', or be without " +
                                       std::string(refused == "}" ? "'}'" : "'{' and '}'") +
                                       ", so that all keys of the lock share a slot of the "
                                       "cluster (got " +
                                       quoted(name) + ")");
}

}  // namespace redlatch::protocol
