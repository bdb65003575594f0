// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The server's half of the protocol: the Lua scripts, composed from protocol/scripts at build time
// by embed_scripts.cmake, which writes the definitions. Constants; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace redlatch::protocol {

// How a lock stands in its key (docs/wire.md, "Formats").
enum class Format : uint8_t {
  kString = 1,  // the token of who has it, or that readers share it
  kHash = 2,    // a hash: owner -> how often it holds; what Redisson's locks are
  kHashRw = 3,  // a hash with a mode; what Redisson's read-write locks are
};
inline constexpr Format kFormats[] = {Format::kString, Format::kHash, Format::kHashRw};

// KEYS, ARGV and replies stand at the top of protocol/scripts/<name>.lua. The hash formats have no
// plain EXTEND, RAISE_FENCE, ATTACH and VOTE, and only that with a mode has readers.
enum class Script : uint8_t {
  kAcquire,
  kRelease,
  kCancel,
  kServeQueue,
  kExtend,
  kInspect,
  kForceRelease,
  kList,
  kProbe,
  kAcquireRead,
  kExtendShared,
  kUpgrade,
  kDowngrade,
  kRaiseFence,
  kDetach,
  kAttach,
  kVote,
};
inline constexpr size_t kScriptCount = 17;

struct ScriptText {
  std::string_view name;  // as in the file's name: "acquire"
  std::string_view text;
  std::string_view sha1;  // 40 lower-case hex digits: what EVALSHA names the text by
};

// `sharded`: the variant that uses SPUBLISH (servers from 7.0 on) instead of PUBLISH.
// Those that know no lock, kList and kProbe, are found under kString; a script that a format lacks
// is empty.
const ScriptText& script_text(Script script, Format format, bool sharded);

}  // namespace redlatch::protocol
