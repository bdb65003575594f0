// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The format of a lock's key (docs/wire.md, "Formats"), and what a lock that is stored so can do.
// Code asks for a property of the format, not which format it is. Constants; any thread.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include "base/limits.h"

namespace redlatch::protocol {

enum class Format : uint8_t {
#define RL_FORMAT(NAME, name, folder, number, ...) k##name = number,
#include "protocol/formats.def"
#undef RL_FORMAT
};

inline constexpr Format kFormats[] = {
#define RL_FORMAT(NAME, name, ...) Format::k##name,
#include "protocol/formats.def"
#undef RL_FORMAT
};

// Those that the option `format` names.
inline constexpr Format kNamedFormats[] = {
#define RL_FORMAT(NAME, name, ...) Format::k##name,
#define RL_KIND_FORMAT(...)
#include "protocol/formats.def"
#undef RL_FORMAT
};

// The columns of formats.def, which says what they mean.
struct FormatTraits {
  std::string_view word;
  std::string_view letter;
  int64_t longest_ttl_ms;
  bool has_readers;
  bool has_owner;
  bool has_reader_key;
  bool has_extend;
  bool has_handoff;
  bool has_attach;
  bool has_quorum;
  bool has_permits;
  bool has_jobs;
};

// Without `...`: a row that lacks a column does not compile.
inline constexpr FormatTraits kFormatTraits[] = {
#define RL_FORMAT(NAME, name, folder, number, word, letter, ttl, readers, owner, reader_key, \
                  extend, handoff, attach, quorum, permits, jobs)                            \
  {word, letter, ttl, readers, owner, reader_key, extend, handoff, attach, quorum, permits, jobs},
#include "protocol/formats.def"
#undef RL_FORMAT
};

constexpr const FormatTraits &traits(Format format) {
  const size_t place = static_cast<size_t>(format) - 1;
  assert(place < std::size(kFormatTraits));
  return kFormatTraits[place];
}

// The words of the named formats with a property, as messages list them: "string or hash-rw".
std::string words_of_formats(bool FormatTraits::*property);

}  // namespace redlatch::protocol
