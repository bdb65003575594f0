// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The rows of options.def as functions: options are set, read, checked and spelled by name.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/settings.h"
#include "base/status.h"
#include "protocol/format.h"
#include "protocol/token.h"

namespace redlatch::config {

enum class Scope : uint8_t { kClient, kTls, kSentinel, kCluster, kQuorum, kAcquire, kLock, kKind };

// The types of options: options.def says how each is written.
enum class Kind : uint8_t {
  kDURATION,
  kCOUNT,
  kSWITCH,
  kCHOICE,
  kTEXT,
  kPRIVATE,
  kPASSWORD,
  kPASSWORD_FILE,
  kPREFIX,
  kPRINTABLE,
  kHOST,
  kPROGRAM,
  kFILE,
  kFILE_OR_FOLDER,
};

// A row, without its field.
struct Option {
  Scope scope;
  std::string_view name;
  Kind kind;
  int64_t least;
  int64_t most;
  std::string_view words;

  bool is_of_servers() const { return scope <= Scope::kCluster; }
  bool is_of_acquisitions() const { return scope >= Scope::kAcquire; }
};

// nullptr for an unknown name.
const Option *find_option(std::string_view name);

// Set an option by its name. Messages name the option and what is allowed, never the value. An
// option of another scope is unknown.
Outcome set_option(Settings &settings, std::string_view name, std::string_view value);
Outcome set_option(QuorumSettings &settings, std::string_view name, std::string_view value);
Outcome set_option(AcquireSettings &settings, std::string_view name, std::string_view value);

// The same by a number: milliseconds, a count, 0 or 1, or the place of a word.
Outcome set_number(AcquireSettings &settings, std::string_view name, int64_t number);
// One bit for each option of an acquisition, and one for all other names.
uint64_t bit_of(std::string_view name);
// The check of a ttl that is not an option.
Outcome check_ttl(int64_t ttl_ms);
// Check the options of an acquisition together, and choose the format that they leave open.
Outcome choose_format(const AcquireSettings &settings, protocol::Format &format);
// The mode that the options name.
protocol::Mode mode_of(const AcquireSettings &settings);

// The value of an option by its name; empty for a password and an unknown name.
std::string option_of(const Settings &settings, std::string_view name);
std::string option_of(const QuorumSettings &settings, std::string_view name);
std::string option_of(const AcquireSettings &settings, std::string_view name);

// For a message: " (got 'x')", unless the value may be a secret; or its size, if that is wrong.
std::string got(const Option &option, std::string_view value);
// True if the value, as written in a URL, may be shown.
bool is_shown_value(const Option &option, std::string_view value);

// A failure that suggests the nearest name, or lists all. It quotes `name` only if that has the
// form of a name, because it may be a part of a secret.
Outcome unknown_option(std::string_view name, bool is_of_acquisition = false);
// The word of `known` that is nearest to `word`; empty if none is near.
std::string nearest(std::span<const std::string_view> known, std::string_view word);
std::string nearest_option(std::string_view name);

}  // namespace redlatch::config
