// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "store.h"

#include "commands.h"
#include "lua_host.h"

namespace redlatch::sim {

Store::Store(Listener &listener) : listener_(listener), lua_(std::make_unique<Lua>(*this)) {}

Store::~Store() = default;

Value Store::execute(Argv argv, int64_t now_us) {
  now_us_ = now_us;
  return Commands(*this).execute(argv);
}

void Store::define(std::string_view sha1, std::string_view text) { lua_->define(sha1, text); }

void Store::flush_scripts() { lua_->flush(); }

void Store::clear() {
  keys_.clear();
  lua_->flush();
}

void Store::expire(int64_t now_us) {
  for (auto at = keys_.begin(); at != keys_.end();) {
    const auto entry = at++;
    if (entry->second.expires_ms < 0 || now_us / 1000 <= entry->second.expires_ms) continue;
    const auto node = keys_.extract(entry);
    listener_.changed(node.key());
  }
}

}  // namespace redlatch::sim
