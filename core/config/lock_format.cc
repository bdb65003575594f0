// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The options of an acquisition together: which go with each other, and which format they mean.
#include <algorithm>
#include <cassert>
#include <iterator>
#include <optional>
#include <string>

#include "base/text.h"
#include "config/option_table.h"
#include "config/option_values.h"

namespace redlatch::config {

namespace {

const Option &row(std::string_view name) {
  const Option *option = find_option(name);
  assert(option != nullptr && "options.def has it");
  return *option;
}

// The format of a place among these words; nullopt: it is open.
std::optional<protocol::Format> format_at(uint8_t place) {
  assert(place <= std::size(protocol::kNamedFormats) && "read_value() and set_number() check it");
  if (place == 0) return {};
  return protocol::kNamedFormats[place - 1];
}

// The first one that suits: that of a lock for which none is named.
protocol::Format usual_format(bool is_reentrant) {
  return *std::find_if(
      std::begin(protocol::kNamedFormats), std::end(protocol::kNamedFormats),
      [is_reentrant](auto one) { return protocol::traits(one).has_owner == is_reentrant; });
}

Outcome not_for_semaphore(std::string_view name, std::string_view allowed, std::string_view why,
                          const std::string &got) {
  return failure(Status::kInvalid, "option '" + std::string(name) + "' must " +
                                       std::string(allowed) + " for a semaphore, which " +
                                       std::string(why) + " (got " + got + ")");
}

// Options that do not go with `permits` and `limit`.
Outcome check_semaphore(const AcquireSettings &settings) {
  if (settings.permits > settings.limit) {
    Option option = row("permits");
    option.most = settings.limit;
    auto outcome = must_be(option, allowed_of(option) + ", the limit");
    outcome.message += " (got " + std::to_string(settings.permits) + ")";
    return outcome;
  }
  constexpr std::string_view kWhyNoOwner = "gives other permits to a caller that has some";
  if (settings.is_reentrant) return not_for_semaphore("reentrant", "be no", kWhyNoOwner, "yes");
  if (!settings.owner.empty()) {
    return not_for_semaphore("owner", "not be set", kWhyNoOwner, quoted(settings.owner));
  }
  if (settings.format_number != 0) {
    return not_for_semaphore("format", "be auto", "has one format", option_of(settings, "format"));
  }
  if (settings.mode_number != 0) {
    return not_for_semaphore("mode", "be write", "has no readers", "read");
  }
  if (!settings.candidate.empty()) {
    return not_for_semaphore("id", "not be set", "has several holders", quoted(settings.candidate));
  }
  return {};
}

// Options that do not go with `id`.
Outcome check_candidate(const AcquireSettings &settings, protocol::Format format) {
  std::string_view name, allowed;
  if (!protocol::traits(format).has_jobs) name = "format", allowed = "auto or string";
  if (settings.is_reentrant) name = "reentrant", allowed = "no";
  if (settings.mode_number != 0) name = "mode", allowed = "write";
  if (name.empty()) return {};
  return failure(Status::kInvalid, "option " + quoted(name) + " must be " + std::string(allowed) +
                                       " for an election (got " + option_of(settings, name) + ")");
}

// Options that do not go with `retain`.
Outcome check_retain(const AcquireSettings &settings, protocol::Format format) {
  std::string_view kind, why;
  if (!protocol::traits(format).has_jobs) {
    const bool is_semaphore = protocol::traits(format).has_permits;
    kind = is_semaphore ? "a semaphore" : "a lock in another format than string";
    why = is_semaphore ? "gives its permits to others" : "may have other libraries";
  }
  if (!settings.candidate.empty()) kind = "an election", why = "has a leader as long as a term";
  if (kind.empty()) return {};
  return failure(Status::kInvalid, "option 'retain' must be 0 for " + std::string(kind) +
                                       ", which " + std::string(why) + " (got " +
                                       std::to_string(settings.retain / kMs) + " ms)");
}

Outcome choose(const AcquireSettings &settings, protocol::Format &format) {
  if (settings.limit > 0) {
    format = protocol::Format::kPermits;
    return check_semaphore(settings);
  }
  if (settings.permits != 1) {
    return failure(Status::kInvalid, "option 'limit' must be set for permits");
  }
  const auto named = format_at(settings.format_number);
  const bool is_named_with_owner = named && protocol::traits(*named).has_owner;
  if (settings.is_reentrant && named && !is_named_with_owner) {
    const Option &option = row("format");
    const std::string words = protocol::words_of_formats(&protocol::FormatTraits::has_owner);
    auto outcome = must_be(option, "auto or " + words + " for a reentrant lock");
    outcome.message += " (got " + option_of(settings, "format") + ")";
    return outcome;
  }
  if (settings.is_reentrant && settings.owner.empty()) {
    return failure(Status::kInvalid, "option 'owner' must be set for a reentrant lock");
  }
  format = named ? *named : usual_format(settings.is_reentrant);
  if (!settings.candidate.empty()) {
    if (auto outcome = check_candidate(settings, format); !outcome.ok()) return outcome;
  }
  const protocol::FormatTraits &chosen = protocol::traits(format);
  const auto with_format = [&chosen] { return " with the format " + std::string(chosen.word); };
  if (is_named_with_owner && !settings.owner.empty() && !settings.is_reentrant) {
    return failure(Status::kInvalid, "option 'reentrant' must be yes for an owner" + with_format());
  }
  if (settings.ttl > chosen.longest_ttl_ms * kMs) {
    Option option = row("ttl");
    option.most = chosen.longest_ttl_ms;
    auto outcome = must_be(option, allowed_of(option) + with_format());
    outcome.message += " (got " + std::to_string(settings.ttl / kMs) + " ms)";
    return outcome;
  }
  return {};
}

}  // namespace

Outcome choose_format(const AcquireSettings &settings, protocol::Format &format) {
  auto outcome = choose(settings, format);
  return outcome.ok() && settings.retain > 0 ? check_retain(settings, format) : outcome;
}

}  // namespace redlatch::config
