// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "driver/messages.h"

#include <optional>
#include <string_view>

#include "protocol/token.h"

namespace redlatch::driver {

void take_message(lock::LockService &service, size_t node, bool is_sharded, const Reply &message,
                  Nanos now) {
  const std::string_view kind = message.at(0).text();
  if (kind == "message" || kind == "smessage") {
    const std::string_view text = message.at(2).text();
    // No server counts the receivers of the plain channel beside a sharded one: notices only.
    const bool is_beside = kind == "message" && is_sharded;
    if (is_beside && !protocol::is_notice(text)) return;
    return service.on_push(node, text, now);
  }
  if (kind == "sunsubscribe") return service.on_unsubscribed(node, now);
  if (kind != "invalidate") return;
  const Reply &keys = message.at(1);
  if (keys.kind == Reply::Kind::kNil) return service.on_invalidated(node, std::nullopt, now);
  for (size_t i = 0; i < keys.count(); i++) service.on_invalidated(node, keys.at(i).text(), now);
}

}  // namespace redlatch::driver
