// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Settings of a client, given when it is opened, and of an acquisition. Made by core/config from
// the URL and the options; constant afterwards. Each row of options.def is a field here.
#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "base/limits.h"

namespace redlatch {

// The field of an option, by its kind: it has the default.
#define RL_FIELD_TEXT(field, initial) std::string field = initial;
#define RL_FIELD_DURATION(field, initial) Nanos field = (initial)*kMs;
#define RL_FIELD_COUNT(field, initial) int field = initial;
#define RL_FIELD_SWITCH(field, initial) bool field = (initial) != 0;
#define RL_FIELD_CHOICE(field, initial) uint8_t field = initial;
#define RL_FIELD_PASSWORD_FILE(field, initial)  // that of the password
#define RL_FIELD_PRIVATE RL_FIELD_TEXT
#define RL_FIELD_PASSWORD RL_FIELD_TEXT
#define RL_FIELD_PREFIX RL_FIELD_TEXT
#define RL_FIELD_PRINTABLE RL_FIELD_TEXT
#define RL_FIELD_HOST RL_FIELD_TEXT
#define RL_FIELD_PROGRAM RL_FIELD_TEXT
#define RL_FIELD_FILE RL_FIELD_TEXT
#define RL_FIELD_FILE_OR_FOLDER RL_FIELD_TEXT
#define RL_FIELD(name, field, KIND, least, most, initial, ...) RL_FIELD_##KIND(field, initial)

// For a server that is reached over TLS. Paths are absolute.
struct TlsSettings {
  // The words of tls_verify, by their places.
  enum Verify : uint8_t {
    kFull,  // a trusted authority has signed the certificate, and it is for this host
    kCa,    // a trusted authority has signed the certificate
    kNone,
  };
  bool is_on = false;
  bool is_asked_for = false;  // a TLS option is set, which without is_on is an error
#define RL_TLS_OPTION RL_FIELD
#include "config/options.def"
};

struct Settings {
  std::string host;  // of a TCP server; empty for unix sockets
  std::string port = "6379";
  std::string socket_path;  // of a unix socket
  std::string folder;       // of an embedded server, whose socket_path is in it
  TlsSettings tls;
  std::string shown_url;  // the URL as it was given, without secrets
#define RL_CLIENT_OPTION RL_FIELD
#include "config/options.def"

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
#define RL_QUORUM_OPTION RL_FIELD
#include "config/options.def"
};

// Settings of an acquisition. A count may have a default below its range: the library chooses.
struct AcquireSettings {
#define RL_ACQUIRE_OPTION RL_FIELD
#define RL_LOCK_OPTION RL_FIELD
#include "config/options.def"
};

#undef RL_FIELD
#undef RL_FIELD_TEXT
#undef RL_FIELD_DURATION
#undef RL_FIELD_COUNT
#undef RL_FIELD_SWITCH
#undef RL_FIELD_CHOICE
#undef RL_FIELD_PASSWORD_FILE
#undef RL_FIELD_PRIVATE
#undef RL_FIELD_PASSWORD
#undef RL_FIELD_PREFIX
#undef RL_FIELD_PRINTABLE
#undef RL_FIELD_HOST
#undef RL_FIELD_PROGRAM
#undef RL_FIELD_FILE
#undef RL_FIELD_FILE_OR_FOLDER

}  // namespace redlatch
