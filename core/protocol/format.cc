// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "protocol/format.h"

#include <algorithm>

namespace redlatch::protocol {

namespace {

consteval bool are_rows_sound() {
  for (size_t i = 0; i < std::size(kFormats); i++) {
    const FormatTraits &row = kFormatTraits[i];
    if (static_cast<size_t>(kFormats[i]) != i + 1 || row.word.empty()) return false;
    if (row.longest_ttl_ms < kMinTtlMs || row.longest_ttl_ms > kMaxTtlMs) return false;
    for (size_t k = 0; k < i; k++) {
      if (row.word == kFormatTraits[k].word || row.letter == kFormatTraits[k].letter) return false;
    }
  }
  return true;
}
static_assert(std::equal(std::begin(kNamedFormats), std::end(kNamedFormats), std::begin(kFormats)),
              "formats.def: named formats come first");
static_assert(are_rows_sound(), "formats.def: number, word, letter or ttl of a row");

}  // namespace

std::string words_of_formats(bool FormatTraits::*property) {
  std::string words;
  auto left = std::count_if(std::begin(kNamedFormats), std::end(kNamedFormats),
                            [property](Format one) { return traits(one).*property; });
  for (const Format one : kNamedFormats) {
    if (!(traits(one).*property)) continue;
    if (!words.empty()) words += left == 1 ? " or " : ", ";
    words += traits(one).word;
    left--;
  }
  return words;
}

}  // namespace redlatch::protocol
