// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Why there is no connection. The host says what it saw, as a code; whether that may pass, and the
// words for it, are decided here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/settings.h"
#include "base/status.h"

namespace redlatch {

struct DialFailure {
  enum class Kind : uint8_t {
    kNone,              // there is a connection
    kNameUnknown,       // text: what the name service says
    kNameLate,          // no answer from the name service within the limit
    kSystem,            // number: errno of the last address
    kLate,              // no answer of the server within the limit
    kClosed,            // by the server
    kTlsMissing,        // text: what the host lacks
    kTlsUnusable,       // text: what the library says
    kTlsNoAuthorities,  // the system's; text: what the library says
    kTlsCa,             // the file or folder cannot be used; number: errno,
    kTlsCert,           //   else text: what the library says,
    kTlsKey,            //   else it is not a file
    kTlsName,           // TLS does not allow the name of the server
    kTlsLate,           // no answer within the limit of the handshake
    kTls,               // number: the alert of the server (RFC 8446, 6.2), or 0; text: its words
    kCertificate,       // number: OpenSSL's result of the verification; text: its words
  };
  Kind kind = Kind::kNone;
  int number = 0;
  std::string text;

  bool ok() const { return kind == Kind::kNone; }
  // No server listens at the address, or the socket does not exist.
  bool is_nobody_there() const;
};

// @return whether a later attempt to connect may succeed: waiting callers do not hear of this one.
constexpr bool may_pass(Status status) {
  return status == Status::kUnavailable || status == Status::kServer || status == Status::kNoMemory;
}

// The server, for messages and for TLS.
struct Peer {
  Peer() = default;
  explicit Peer(const Settings &settings)
      : address(settings.address()), host(settings.host), tls(settings.tls) {}

  // The name that is sent over TLS, and verified.
  const std::string &tls_name() const { return tls.sni.empty() ? host : tls.sni; }

  std::string address;
  std::string host;
  TlsSettings tls;
};

inline constexpr std::string_view kNoAnswer = "no answer within the time limit";
inline constexpr std::string_view kClosedByServer = "the connection was closed by the server";

// A retry may help.
Outcome unreachable(const std::string &address, std::string_view why);

// The outcome for the client. It is kUnavailable if a retry may help.
Outcome verdict_of(const DialFailure &seen, const Peer &peer);

}  // namespace redlatch
