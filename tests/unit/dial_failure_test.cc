// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: what each failure of a dial or a handshake means. Method: a table of codes, statuses and
// words.
#include "base/dial_failure.h"

#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include <cerrno>
#include <set>
#include <string>

namespace redlatch {
namespace {

using Kind = DialFailure::Kind;

Peer a_peer(const std::string &sni = "", bool is_of_sentinels = false) {
  Settings settings;
  settings.host = "h";
  settings.port = "1";
  settings.tls.is_on = true;
  settings.tls.is_of_sentinels = is_of_sentinels;
  settings.tls.sni = sni;
  settings.tls.ca = "/ca";
  settings.tls.cert = "/cert";
  settings.tls.key = "/key";
  return Peer(settings);
}

TEST(DialFailureTest, each_code_has_a_status_and_words) {
  struct Row {
    DialFailure seen;
    Status status;
    const char *message;
  };
  const Row rows[] = {
      {{}, Status::kOk, ""},
      {{Kind::kNameUnknown, 0, "Name or service not known"},
       Status::kUnavailable,
       "cannot reach rediss://h:1: host h: Name or service not known"},
      {{Kind::kNameLate, 0, ""},
       Status::kUnavailable,
       "cannot reach rediss://h:1: host h: no answer from the name service within the limit"},
      {{Kind::kSystem, ECONNREFUSED, ""},
       Status::kUnavailable,
       "cannot reach rediss://h:1: Connection refused"},
      {{Kind::kLate, 0, ""},
       Status::kUnavailable,
       "cannot reach rediss://h:1: no answer within the time limit"},
      {{Kind::kClosed, 0, ""},
       Status::kUnavailable,
       "cannot reach rediss://h:1: the connection was closed by the server"},
      {{Kind::kTlsMissing, 0, "no libssl"},
       Status::kUnsupported,
       "TLS needs OpenSSL 3 on this host: no libssl"},
      {{Kind::kTlsUnusable, 0, "no memory"},
       Status::kUnsupported,
       "OpenSSL of this host cannot be used: no memory"},
      {{Kind::kTlsNoAuthorities, 0, "none"},
       Status::kInvalid,
       "the system's authorities cannot be used: none; the option tls_ca names others"},
      {{Kind::kTlsCa, ENOENT, ""},
       Status::kInvalid,
       "option 'tls_ca': '/ca' cannot be used: No such file or directory"},
      {{Kind::kTlsCert, 0, ""},
       Status::kInvalid,
       "option 'tls_cert': '/cert' cannot be used: it is not a file"},
      {{Kind::kTlsKey, 0, "no start line"},
       Status::kInvalid,
       "option 'tls_key': '/key' cannot be used: no start line"},
      {{Kind::kTlsName, 0, ""}, Status::kInvalid, "'h' is not a valid TLS server name"},
      {{Kind::kTlsLate, 0, ""},
       Status::kUnavailable,
       "cannot reach rediss://h:1: no TLS answer within the time limit, as from a port without "
       "TLS"},
      {{Kind::kTls, 0, "bad record mac"},
       Status::kUnavailable,
       "cannot reach rediss://h:1 over TLS: bad record mac"},
      {{Kind::kTls, SSL_AD_UNKNOWN_CA, "unknown ca"},
       Status::kDenied,
       "rediss://h:1 refused the connection over TLS: unknown ca"},
      {{Kind::kTls, SSL_AD_PROTOCOL_VERSION, "protocol version"},
       Status::kUnsupported,
       "rediss://h:1 refused the connection over TLS: protocol version"},
      {{Kind::kCertificate, X509_V_ERR_CERT_HAS_EXPIRED, "certificate has expired"},
       Status::kDenied,
       "the certificate of rediss://h:1 is not accepted: certificate has expired"},
  };
  for (const Row &row : rows) {
    const auto outcome = verdict_of(row.seen, a_peer());
    EXPECT_EQ(outcome.status, row.status) << row.message;
    EXPECT_EQ(outcome.message, row.message);
  }
}

TEST(DialFailureTest, these_alerts_are_final) {
  const std::set<int> final_ones = {SSL_AD_HANDSHAKE_FAILURE,
                                    SSL_AD_BAD_CERTIFICATE,
                                    SSL_AD_UNSUPPORTED_CERTIFICATE,
                                    SSL_AD_CERTIFICATE_REVOKED,
                                    SSL_AD_CERTIFICATE_EXPIRED,
                                    SSL_AD_CERTIFICATE_UNKNOWN,
                                    SSL_AD_UNKNOWN_CA,
                                    SSL_AD_ACCESS_DENIED,
                                    SSL_AD_PROTOCOL_VERSION,
                                    SSL_AD_INSUFFICIENT_SECURITY,
                                    SSL_AD_UNRECOGNIZED_NAME,
                                    SSL_AD_CERTIFICATE_REQUIRED};
  for (int alert = 0; alert < 256; alert++) {
    const auto outcome = verdict_of({Kind::kTls, alert, "x"}, a_peer());
    EXPECT_EQ(outcome.status != Status::kUnavailable, final_ones.contains(alert)) << alert;
  }
}

TEST(DialFailureTest, a_refused_certificate_names_the_option_that_helps) {
  const auto hint = [](int result, const Peer &peer) {
    const std::string message = verdict_of({Kind::kCertificate, result, "x"}, peer).message;
    return message.substr(message.find("accepted: x") + 11);
  };
  for (const int result : {X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH}) {
    EXPECT_EQ(hint(result, a_peer()), ", it is not for 'h'; the option tls_sni names another");
    EXPECT_EQ(hint(result, a_peer("other", true)),
              ", it is not for 'other'; the option sentinel_tls_sni names another");
  }
  for (const int result :
       {X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT,
        X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY}) {
    EXPECT_EQ(hint(result, a_peer()),
              "; the option tls_ca names authorities to trust, a file, or a folder with their "
              "hashes");
  }
}

TEST(DialFailureTest, nobody_is_there_only_if_the_kernel_says_so) {
  EXPECT_TRUE((DialFailure{Kind::kSystem, ECONNREFUSED, ""}.is_nobody_there()));
  EXPECT_TRUE((DialFailure{Kind::kSystem, ENOENT, ""}.is_nobody_there()));
  EXPECT_FALSE((DialFailure{Kind::kSystem, ETIMEDOUT, ""}.is_nobody_there()));
  EXPECT_FALSE((DialFailure{Kind::kTlsCa, ENOENT, ""}.is_nobody_there()));
}

}  // namespace
}  // namespace redlatch
