// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The server's half of the protocol: the Lua scripts, composed from wire/scripts at build time by
// embed_scripts.cmake, which writes the definitions. Constants; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace redlatch::wire {

// KEYS, ARGV and replies stand at the top of wire/scripts/<name>.lua.
enum class Script : uint8_t {
  kAcquire,
  kRelease,
  kCancel,
  kKick,
  kExtend,
  kInspect,
  kForceRelease,
  kList,
  kProbe,
};
inline constexpr size_t kScriptCount = 9;

struct ScriptText {
  std::string_view name;  // as in the file's name: "acquire"
  std::string_view text;
  std::string_view sha1;  // 40 lower-case hex digits: what EVALSHA names the text by
};

// `sharded`: the variant that uses SPUBLISH (servers from 7.0 on) instead of PUBLISH.
const ScriptText& script_text(Script script, bool sharded);

}  // namespace redlatch::wire
