// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Settings: what a client was told at open. Made by core/config from URL and options; read by
// engine and io. Constant afterwards.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/limits.h"

namespace redlatch {

// Of a server that is reached by TLS. Paths are absolute.
struct TlsSettings {
  enum class Verify : uint8_t {
    kFull,  // the certificate is by an authority that is trusted, and for this host
    kCa,    // only the former
    kNone,
  };
  bool is_on = false;
  bool is_asked_for = false;  // by one of its options
  std::string ca;             // a file or a folder of authorities; empty: those of the system
  std::string cert;           // what is shown to the server, with what leads to its authority
  std::string key;            // .. and its private key
  std::string sni;            // whom to ask for and to check, if not the host
  Verify verify = Verify::kFull;
};

struct Settings {
  std::string host;  // of a TCP server; empty for a unix socket
  std::string port = "6379";
  std::string socket_path;  // of a unix socket
  std::string folder;       // of an embedded server; socket_path is in it
  std::string server;       // .. the binary that it is started from, if it is not to be looked for
  TlsSettings tls;
  std::string user;
  std::string password;
  int database = 0;
  int protocol = 3;  // the newest to try
  std::string name_space;
  std::string holder;
  std::string client_name = "redlatch";
  std::string shown_url;  // as it was given, without secrets
  Nanos connect_timeout = kDefaultTimeoutMs * kMs;
  Nanos timeout = kDefaultTimeoutMs * kMs;

  // The server as messages show it, without user and password.
  std::string address() const {
    if (!folder.empty()) return "embedded://" + folder;
    if (!socket_path.empty()) return "unix://" + socket_path;
    const bool is_ipv6 = host.find(':') != std::string::npos;
    return (tls.is_on ? "rediss://" : "redis://") + (is_ipv6 ? "[" + host + "]" : host) + ":" +
           port;
  }
};

// What a Redlock was told at open, besides what each of its nodes was.
struct QuorumSettings {
  Nanos node_timeout = 0;  // 0: timing::node_limit()
  // A node younger than this has no vote, and no lease is longer; 0: no guard.
  Nanos restart_guard = kDefaultRestartGuardMs * kMs;
  bool is_durable = false;  // nodes forget nothing when they restart
  bool is_fenced = false;
  Nanos min_validity = 0;
};

}  // namespace redlatch
