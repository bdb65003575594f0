// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "base/message.h"

#include <new>

#include "base/text.h"

namespace redlatch {

namespace {

struct Writer {
  std::string &out;

  void operator()(std::string_view text) const { out += text; }
  void operator()(int64_t number) const { out += std::to_string(number); }
  void operator()(const LockName &lock) const { out.append("lock ").append(quoted(lock.name)); }
  void operator()(const Quoted &quote) const { out += quoted(quote.text); }
  void operator()(const Seconds &time) const { out += in_seconds(time.ms); }
  void operator()(const After &last) const {
    if (!last.text.empty()) out.append(last.separator).append(last.text);
  }
  void operator()(const Foreign &other) const { out += clean(other.text); }
  void operator()(const Settings *server) const { out += server->address(); }
};

}  // namespace

std::string message_of(std::initializer_list<MessagePart> parts) noexcept {
  try {
    std::string out;
    for (const MessagePart &part : parts) std::visit(Writer{out}, part);
    return out;
  } catch (const std::bad_alloc &) {
    return {};
  }
}

}  // namespace redlatch
