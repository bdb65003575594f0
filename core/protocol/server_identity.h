// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The identity of a server, in its own words: software, version, mode and role by HELLO or INFO;
// run id and age by INFO and TIME.
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/node_status.h"
#include "base/reply.h"
#include "base/server_facts.h"

namespace redlatch::protocol {

// The first facts about a server. Texts are borrowed from the reply.
struct Greeting {
  std::string_view server;   // "redis" or "valkey"
  std::string_view version;  // empty: not known
  NodeRole role = NodeRole::kUnknown;
  bool is_sentinel = false;
  bool is_resp2 = false;  // HELLO was answered with RESP2

  bool is_supported() const;
  bool has_sharded_channels() const;
  std::string text() const;  // "Valkey 8.0.1"
};
Greeting read_hello(const Reply &reply);
// The same of a server without HELLO, from its INFO.
Greeting read_info(std::string_view info);
// True if `error` is about HELLO itself: servers and proxies that lack it have several words for
// that. A proxy without its server has others, such as "ERR Connection refused".
bool is_about_hello(std::string_view error);

// The identity: two sections of INFO, then TIME. Without an uptime there is no run id either.
void read_server_info(std::string_view info, ServerFacts &facts);
void read_replication_info(std::string_view info, ServerFacts &facts);
// @return false if the reply is no time.
bool read_time(const Reply &reply, Nanos now, ServerAge &age);

}  // namespace redlatch::protocol
