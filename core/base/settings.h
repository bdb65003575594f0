// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Settings of a client, given when it is opened. Made by core/config from the URL and the options;
// constant afterwards.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/limits.h"

namespace redlatch {

// For a server that is reached over TLS. Paths are absolute.
struct TlsSettings {
  enum class Verify : uint8_t {
    kFull,  // a trusted authority has signed the certificate, and it is for this host
    kCa,    // a trusted authority has signed the certificate
    kNone,
  };
  bool is_on = false;
  bool is_asked_for = false;  // a TLS option is set, which without is_on is an error
  std::string ca;             // a file or a folder of authorities; empty: those of the system
  std::string cert;           // the client certificate, with its chain
  std::string key;            // the private key of the client certificate
  std::string sni;            // the name to send and to verify; empty: the host
  Verify verify = Verify::kFull;
};

struct Settings {
  std::string host;  // of a TCP server; empty for unix sockets
  std::string port = "6379";
  std::string socket_path;  // of a unix socket
  std::string folder;       // of an embedded server, whose socket_path is in it
  std::string server;       // the binary of an embedded server; empty: searched for
  TlsSettings tls;
  std::string user;
  std::string password;
  int database = 0;
  int protocol = 3;  // the newest to try
  std::string name_space;
  std::string holder;
  std::string client_name = "redlatch";
  std::string shown_url;  // the URL as it was given, without secrets
  Nanos connect_timeout = kDefaultTimeoutMs * kMs;
  Nanos timeout = kDefaultTimeoutMs * kMs;  // of one command

  // The server as messages show it, without user and password.
  std::string address() const {
    if (!folder.empty()) return "embedded://" + folder;
    if (!socket_path.empty()) return "unix://" + socket_path;
    const bool is_ipv6 = host.find(':') != std::string::npos;
    return (tls.is_on ? "rediss://" : "redis://") + (is_ipv6 ? "[" + host + "]" : host) + ":" +
           port;
  }
};

// Settings of a Redlock, beside those of each of its nodes.
struct QuorumSettings {
  Nanos node_timeout = 0;  // 0: timing::node_limit()
  // A node that started less than this ago has no vote, and no lease is longer; 0: no guard.
  Nanos restart_guard = kDefaultRestartGuardMs * kMs;
  bool is_durable = false;  // nodes keep their data when they restart
  bool is_fenced = false;
  Nanos min_validity = 0;
};

}  // namespace redlatch
