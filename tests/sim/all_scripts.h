// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Visits every Lua script of the product, in all formats and variants.
#pragma once

#include "protocol/scripts.h"

namespace redlatch::sim {

inline constexpr protocol::Format kFormats[] = {protocol::Format::kString, protocol::Format::kHash,
                                                protocol::Format::kPermits};

// `visit(script, format, text)`.
template <class Visit>
void for_each_script(bool is_sharded, const Visit &visit) {
  for (const protocol::Format format : kFormats) {
    for (size_t i = 0; i < protocol::kScriptCount; i++) {
      const auto script = static_cast<protocol::Script>(i);
      const protocol::ScriptText &text = protocol::script_text(script, format, is_sharded);
      if (text.size != 0) visit(script, format, text);
    }
  }
}

template <class Visit>
void for_each_script(const Visit &visit) {
  for (const bool is_sharded : {false, true}) for_each_script(is_sharded, visit);
}

}  // namespace redlatch::sim
