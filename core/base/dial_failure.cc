// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "base/dial_failure.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/text.h"

namespace redlatch {

namespace {

using Kind = DialFailure::Kind;

constexpr int kProtocolVersion = 70;
// The alerts of RFC 8446, 6.2, that are permanent: a retry will not help.
constexpr auto kFinalAlerts = std::to_array<int>({
    40,  // handshake_failure
    42,  // bad_certificate
    43,  // unsupported_certificate
    44,  // certificate_revoked
    45,  // certificate_expired
    46,  // certificate_unknown
    48,  // unknown_ca
    49,  // access_denied
    kProtocolVersion,
    71,   // insufficient_security
    112,  // unrecognized_name
    116,  // certificate_required
});

// Results of OpenSSL's verification, without their X509_V_ERR_.
constexpr int kDepthZeroSelfSignedCert = 18;
constexpr int kSelfSignedCertInChain = 19;
constexpr int kUnableToGetIssuerCertLocally = 20;
constexpr int kHostnameMismatch = 62;
constexpr int kIpAddressMismatch = 64;

// One call for all the parts: a chain of + is long code at each place.
std::string joined(std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const std::string_view part : parts) text += part;
  return text;
}

Outcome failed(Status status, std::initializer_list<std::string_view> message) {
  return failure(status, joined(message));
}

Outcome passing(const Peer &peer, std::initializer_list<std::string_view> why) {
  return failed(Status::kUnavailable, {"cannot reach ", peer.address, joined(why)});
}

Outcome unusable_file(const DialFailure &seen, const Peer &peer, const char *option,
                      const std::string &path) {
  const std::string why = seen.number != 0    ? reason_of(seen.number)
                          : seen.text.empty() ? "it is not a file"
                                              : seen.text;
  return failed(Status::kInvalid, {"option '", peer.tls.option(option), "': ", quoted(path, 256),
                                   " cannot be used: ", why});
}

Outcome failed_handshake(const DialFailure &seen, const Peer &peer) {
  const int alert = seen.number;
  if (std::find(kFinalAlerts.begin(), kFinalAlerts.end(), alert) == kFinalAlerts.end()) {
    return passing(peer, {" over TLS: ", seen.text});
  }
  return failed(alert == kProtocolVersion ? Status::kUnsupported : Status::kDenied,
                {peer.address, " refused the connection over TLS: ", seen.text});
}

Outcome refused_certificate(const DialFailure &seen, const Peer &peer) {
  std::string hint;
  switch (seen.number) {
    case kHostnameMismatch:
    case kIpAddressMismatch:
      hint = joined({", it is not for ", quoted(peer.tls_name(), 256), "; the option ",
                     peer.tls.option("tls_sni"), " names another"});
      break;
    case kSelfSignedCertInChain:
    case kDepthZeroSelfSignedCert:
    case kUnableToGetIssuerCertLocally:
      hint = joined({"; the option ", peer.tls.option("tls_ca"),
                     " names authorities to trust, a file, or a folder with their hashes"});
      break;
    default:
      break;
  }
  return failed(Status::kDenied,
                {"the certificate of ", peer.address, " is not accepted: ", seen.text, hint});
}

}  // namespace

Outcome unreachable(const std::string &address, std::string_view why) {
  return failed(Status::kUnavailable, {"cannot reach ", address, ": ", why});
}

bool DialFailure::is_nobody_there() const {
  return kind == Kind::kSystem && (number == ECONNREFUSED || number == ENOENT);
}

Outcome verdict_of(const DialFailure &seen, const Peer &peer) {
  switch (seen.kind) {
    case Kind::kNone:
      break;
    case Kind::kNameUnknown:
      return passing(peer, {": host ", peer.host, ": ", seen.text});
    case Kind::kNameLate:
      return passing(peer,
                     {": host ", peer.host, ": no answer from the name service within the limit"});
    case Kind::kSystem:
      return passing(peer, {": ", reason_of(seen.number)});
    case Kind::kLate:
      return unreachable(peer.address, kNoAnswer);
    case Kind::kClosed:
      return unreachable(peer.address, kClosedByServer);
    case Kind::kTlsMissing:
      return failed(Status::kUnsupported, {"TLS needs OpenSSL 3 on this host: ", seen.text});
    case Kind::kTlsUnusable:
      return failed(Status::kUnsupported, {"OpenSSL of this host cannot be used: ", seen.text});
    case Kind::kTlsNoAuthorities:
      return failed(Status::kInvalid,
                    {"the system's authorities cannot be used: ", seen.text, "; the option ",
                     peer.tls.option("tls_ca"), " names others"});
    case Kind::kTlsCa:
      return unusable_file(seen, peer, "tls_ca", peer.tls.ca);
    case Kind::kTlsCert:
      return unusable_file(seen, peer, "tls_cert", peer.tls.cert);
    case Kind::kTlsKey:
      return unusable_file(seen, peer, "tls_key", peer.tls.key);
    case Kind::kTlsName:
      return failed(Status::kInvalid,
                    {quoted(peer.tls_name(), 256), " is not a valid TLS server name"});
    case Kind::kTlsLate:
      return passing(peer, {": no TLS answer within the time limit, as from a port without TLS"});
    case Kind::kTls:
      return failed_handshake(seen, peer);
    case Kind::kCertificate:
      return refused_certificate(seen, peer);
  }
  return {};
}

}  // namespace redlatch
