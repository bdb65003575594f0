// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Tls against OpenSSL itself, in memory.
#include "net/tls.h"

#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "base/settings.h"

namespace redlatch::net {
namespace {

struct FreeSsl {
  void operator()(SSL_CTX *context) const { SSL_CTX_free(context); }
  void operator()(SSL *session) const { SSL_free(session); }
  void operator()(X509 *certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY *key) const { EVP_PKEY_free(key); }
};
template <class T>
using Owned = std::unique_ptr<T, FreeSsl>;

// A certificate for `host` that no authority signed, as PEM in `path`.
Owned<X509> make_certificate(EVP_PKEY *key, const char *host, const std::string &path) {
  Owned<X509> certificate(X509_new());
  X509_set_version(certificate.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -60);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
  X509_set_pubkey(certificate.get(), key);
  const std::string names = std::string("DNS:") + host;
  X509_EXTENSION *extension =
      X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, names.c_str());
  X509_add_ext(certificate.get(), extension, -1);
  X509_EXTENSION_free(extension);
  X509_sign(certificate.get(), key, EVP_sha256());
  std::FILE *file = std::fopen(path.c_str(), "w");
  PEM_write_X509(file, certificate.get());
  std::fclose(file);
  return certificate;
}

// A client of ours and a server of OpenSSL's, with wires between them that the test sees.
class TlsTest : public testing::Test {
 protected:
  void SetUp() override {
    key_.reset(EVP_EC_gen("P-256"));
    path_ = testing::TempDir() + "tls_test." + std::to_string(getpid()) + ".pem";
    certificate_ = make_certificate(key_.get(), "server.example", path_);
    context_.reset(SSL_CTX_new(TLS_server_method()));
    SSL_CTX_use_certificate(context_.get(), certificate_.get());
    SSL_CTX_use_PrivateKey(context_.get(), key_.get());
    settings_.host = "server.example";
    settings_.tls.is_on = true;
    settings_.tls.ca = path_;
  }
  void TearDown() override { std::remove(path_.c_str()); }

  // @return whether both ends are content.
  bool connect() {
    server_.reset(SSL_new(context_.get()));
    SSL_set_bio(server_.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_accept_state(server_.get());
    const auto why = Tls::make(Peer(settings_), client_);
    EXPECT_TRUE(why.ok()) << why.text;
    for (int i = 0; i < 10; i++) {
      const Tls::Step step = client_->shake_hands();
      carry_to_server();
      const bool is_done = SSL_do_handshake(server_.get()) == 1;
      if (step == Tls::Step::kFailed) return false;
      carry_to_client();
      if (step == Tls::Step::kDone && is_done) return true;
    }
    return false;
  }

  void carry_to_server() {
    std::string bytes;
    client_->take(bytes);
    BIO_write(SSL_get_rbio(server_.get()), bytes.data(), static_cast<int>(bytes.size()));
  }
  std::string taken_from_server() {
    std::string bytes(BIO_pending(SSL_get_wbio(server_.get())), '\0');
    BIO_read(SSL_get_wbio(server_.get()), bytes.data(), static_cast<int>(bytes.size()));
    return bytes;
  }
  void carry_to_client() {
    const std::string bytes = taken_from_server();
    if (!bytes.empty()) client_->put(bytes);
  }

  Outcome verdict() const { return verdict_of(client_->why(), Peer(settings_)); }

  std::string read_by_client() {
    std::string text;
    std::array<char, 1000> part;
    while (const auto n = client_->read(part).value_or(0)) text.append(part.data(), n);
    return text;
  }
  std::string read_by_server() {
    std::string text;
    std::array<char, 1000> part;
    for (int n; (n = SSL_read(server_.get(), part.data(), part.size())) > 0;) {
      text.append(part.data(), static_cast<size_t>(n));
    }
    return text;
  }
  void say_by_server(std::string_view text) {
    ASSERT_EQ(SSL_write(server_.get(), text.data(), static_cast<int>(text.size())),
              static_cast<int>(text.size()));
  }
  void expect_talk() {
    const std::string text(100'000, 'x');
    ASSERT_EQ(client_->write(text), Tls::Step::kDone);
    carry_to_server();
    EXPECT_EQ(read_by_server(), text);
    say_by_server(text);
    carry_to_client();
    EXPECT_EQ(read_by_client(), text);
  }

  std::string path_;
  Owned<EVP_PKEY> key_;
  Owned<X509> certificate_;
  Owned<SSL_CTX> context_;
  Owned<SSL> server_;
  Settings settings_;
  std::unique_ptr<Tls> client_;
};

TEST_F(TlsTest, client_and_server_exchange_data) {
  ASSERT_TRUE(connect());
  EXPECT_STREQ(SSL_get_version(server_.get()), "TLSv1.3");
  EXPECT_STREQ(SSL_get_servername(server_.get(), TLSEXT_NAMETYPE_host_name), "server.example");
  expect_talk();
}

TEST_F(TlsTest, client_and_server_exchange_data_with_tls_1_2) {
  SSL_CTX_set_max_proto_version(context_.get(), TLS1_2_VERSION);
  ASSERT_TRUE(connect());
  expect_talk();
}

TEST_F(TlsTest, bytes_may_come_one_by_one) {
  ASSERT_TRUE(connect());
  say_by_server("hello");
  for (const char byte : taken_from_server()) {
    EXPECT_EQ(read_by_client(), "");
    client_->put({&byte, 1});
  }
  EXPECT_EQ(read_by_client(), "hello");
}

TEST_F(TlsTest, client_answers_a_key_update_of_the_server) {
  ASSERT_TRUE(connect());
  ASSERT_EQ(SSL_key_update(server_.get(), SSL_KEY_UPDATE_REQUESTED), 1);
  say_by_server("a");
  carry_to_client();
  EXPECT_EQ(read_by_client(), "a");
  int answer_count = 0;
  SSL_set_msg_callback_arg(server_.get(), &answer_count);
  SSL_set_msg_callback(server_.get(), [](int is_sent, int /*version*/, int kind, const void *bytes,
                                         size_t /*size*/, SSL * /*session*/, void *count) {
    const bool is_update = kind == SSL3_RT_HANDSHAKE &&
                           *static_cast<const unsigned char *>(bytes) == SSL3_MT_KEY_UPDATE;
    if (is_sent == 0 && is_update) ++*static_cast<int *>(count);
  });
  expect_talk();
  EXPECT_EQ(answer_count, 1);
}

// A message after the handshake that takes several records.
TEST_F(TlsTest, write_needs_more_input_during_a_handshake_message) {
  ASSERT_TRUE(connect());
  const std::string large(2000, 'x');
  SSL_SESSION_set1_ticket_appdata(SSL_get_session(server_.get()), large.data(), large.size());
  SSL_set_max_send_fragment(server_.get(), 512);
  ASSERT_EQ(SSL_new_session_ticket(server_.get()), 1);
  ASSERT_EQ(SSL_do_handshake(server_.get()), 1);
  const std::string bytes = taken_from_server();
  constexpr size_t kHalf = 1000;
  ASSERT_GT(bytes.size(), 2 * kHalf);
  client_->put({bytes.data(), kHalf});
  EXPECT_EQ(read_by_client(), "");
  EXPECT_EQ(client_->write("a"), Tls::Step::kNeedsMore);
  EXPECT_TRUE(client_->why().ok());
  client_->put({bytes.data() + kHalf, bytes.size() - kHalf});
  EXPECT_EQ(read_by_client(), "");
  EXPECT_EQ(client_->write("a"), Tls::Step::kDone);
  carry_to_server();
  EXPECT_EQ(read_by_server(), "a");
}

TEST_F(TlsTest, server_cannot_renegotiate) {
  SSL_CTX_set_max_proto_version(context_.get(), TLS1_2_VERSION);
  ASSERT_TRUE(connect());
  SSL_renegotiate(server_.get());
  SSL_do_handshake(server_.get());
  carry_to_client();
  EXPECT_EQ(read_by_client(), "");
  std::string answer;
  client_->take(answer);
  EXPECT_TRUE(answer.starts_with('\x15')) << "an alert, not a handshake";
}

TEST_F(TlsTest, changed_byte_ends_the_connection) {
  ASSERT_TRUE(connect());
  say_by_server("hello");
  std::string bytes = taken_from_server();
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  client_->put(bytes);
  std::array<char, 10> part;
  EXPECT_FALSE(client_->read(part).has_value());
  EXPECT_EQ(verdict().status, Status::kUnavailable);
  EXPECT_NE(verdict().message.find("bad record mac"), std::string::npos) << verdict().message;
  EXPECT_EQ(client_->write("more"), Tls::Step::kFailed);
}

TEST_F(TlsTest, close_notify_is_not_a_failure) {
  ASSERT_TRUE(connect());
  SSL_shutdown(server_.get());
  carry_to_client();
  std::array<char, 10> part;
  EXPECT_FALSE(client_->read(part).has_value());
  EXPECT_TRUE(client_->why().ok());
}

TEST_F(TlsTest, certificate_must_match_the_host_and_have_a_trusted_ca) {
  settings_.host = "other.example";
  EXPECT_FALSE(connect());
  EXPECT_EQ(verdict().status, Status::kDenied);
  EXPECT_NE(verdict().message.find("it is not for 'other.example'"), std::string::npos);
  settings_.tls.verify = TlsSettings::Verify::kCa;
  EXPECT_TRUE(connect());
  settings_.tls.verify = TlsSettings::Verify::kFull;
  settings_.tls.sni = "server.example";
  EXPECT_TRUE(connect());
  settings_.tls.ca.clear();
  EXPECT_FALSE(connect());
  EXPECT_EQ(verdict().status, Status::kDenied);
  EXPECT_NE(verdict().message.find("tls_ca"), std::string::npos);
  settings_.tls.verify = TlsSettings::Verify::kNone;
  EXPECT_TRUE(connect());
}

TEST_F(TlsTest, certificate_name_must_match_the_whole_host) {
  settings_.host = "server.example.org";
  EXPECT_FALSE(connect());
  settings_.host = "a.server.example";
  EXPECT_FALSE(connect());
  settings_.host = "127.0.0.1";
  EXPECT_FALSE(connect());
  EXPECT_EQ(SSL_get_servername(server_.get(), TLSEXT_NAMETYPE_host_name), nullptr)
      << "an address is not to be asked for";
}

}  // namespace
}  // namespace redlatch::net
