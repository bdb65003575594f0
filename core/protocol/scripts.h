// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The server's half of the protocol: the Lua scripts, composed from protocol/scripts at build time
// by embed_scripts.cmake, which writes the definitions. Constants; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "protocol/format.h"

namespace redlatch::protocol {

// KEYS, ARGV and replies: see the top of protocol/scripts/<name>.lua. The hash formats have no
// plain EXTEND, RAISE_FENCE, ATTACH and VOTE, and only the one with a mode has readers. SET_CAP and
// STATS are of the permits format alone, ONCE_BEGIN and ONCE_FORGET of the string format.
enum class Script : uint8_t {
  kAcquire,
  kRelease,
  kCancel,
  kServeQueue,
  kExtend,
  kInspect,
  kForceRelease,
  kProbe,
  kAcquireRead,
  kExtendShared,
  kUpgrade,
  kDowngrade,
  kRaiseFence,
  kDetach,
  kAttach,
  kVote,
  kOnceBegin,
  kOnceForget,
  kRecall,
  kSetCap,
  kStats,
};
inline constexpr size_t kScriptCount = 21;

struct ScriptText {
  std::string_view name;            // as in the file's name: "acquire"
  std::string_view sha1;            // 40 lower-case hex digits, the argument of EVALSHA
  std::span<const uint16_t> lines;  // numbers of the lines that make up the text
  uint32_t start = 0, size = 0;     // of the text in the memory for all texts
  uint16_t number = 0;

  // Composed by the first call, and then constant.
  std::string_view text() const;
};

// `sharded`: the variant that uses SPUBLISH (servers from 7.0 on) instead of PUBLISH.
// kProbe, which is about no lock, is found under kString. A script that a format lacks is empty.
const ScriptText& script_text(Script script, Format format, bool sharded);

}  // namespace redlatch::protocol
