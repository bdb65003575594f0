// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "net/tls.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cassert>
#include <new>
#include <system_error>

#include "host/files.h"
#include "net/openssl.h"

namespace redlatch::net {

namespace {

using Kind = DialFailure::Kind;

std::string text_of(const OpenSsl &library, unsigned long code) {
  if (error_reason(code) == ERR_R_MALLOC_FAILURE) throw std::bad_alloc();
  if (is_system_error(code)) return std::generic_category().message(error_reason(code));
  const char *text = code == 0 ? nullptr : library.ERR_reason_error_string(code);
  return text == nullptr ? "no reason given" : text;
}

// Without this callback OpenSSL asks for a passphrase at the terminal.
int no_passphrase(char * /*buffer*/, int /*size*/, int /*rwflag*/, void * /*data*/) { return 0; }

// The SSL_CTX of one session.
class Context {
 public:
  Context(const OpenSsl &library, const TlsSettings &settings)
      : library_(library),
        settings_(settings),
        context_(library.SSL_CTX_new(library.TLS_client_method())) {}
  ~Context() { library_.SSL_CTX_free(context_); }
  Context(const Context &) = delete;
  Context &operator=(const Context &) = delete;

  DialFailure prepare();
  SSL_CTX *get() const { return context_; }

 private:
  DialFailure load_authorities();
  DialFailure load_certificate();
  std::string complaint() const { return text_of(library_, library_.ERR_get_error()); }
  DialFailure refused(Kind kind) const { return {kind, 0, complaint()}; }

  const OpenSsl &library_;
  const TlsSettings &settings_;
  SSL_CTX *const context_;
};

// OpenSSL would block for any time on a pipe or a device.
DialFailure check_file(Kind kind, const std::string &path) {
  FileKind found{};
  if (const int error = look_at_file(path, found); error != 0) return {kind, error, {}};
  return found == FileKind::kFile ? DialFailure{} : DialFailure{kind, 0, {}};
}

DialFailure Context::prepare() {
  if (context_ == nullptr) return refused(Kind::kTlsUnusable);
  library_.ERR_clear_error();
  // RFC 8996: 1.0 and 1.1 must not be used. The system's configuration may require more.
  const long oldest = library_.SSL_CTX_ctrl(context_, SSL_CTRL_GET_MIN_PROTO_VERSION, 0, nullptr);
  if (oldest < TLS1_2_VERSION) {
    library_.SSL_CTX_ctrl(context_, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, nullptr);
  }
  // A server has no reason to renegotiate, and could make us buffer without a limit.
  library_.SSL_CTX_set_options(context_, SSL_OP_NO_RENEGOTIATION);
  library_.SSL_CTX_ctrl(context_, SSL_CTRL_MODE, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER, nullptr);
  library_.SSL_CTX_set_default_passwd_cb(context_, no_passphrase);
  const bool is_checked = settings_.verify != TlsSettings::Verify::kNone;
  library_.SSL_CTX_set_verify(context_, is_checked ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nullptr);
  if (is_checked) {
    if (auto why = load_authorities(); !why.ok()) return why;
  }
  return load_certificate();
}

DialFailure Context::load_authorities() {
  const std::string &path = settings_.ca;
  if (path.empty()) {
    if (library_.SSL_CTX_set_default_verify_paths(context_) == 1) return {};
    return refused(Kind::kTlsNoAuthorities);
  }
  FileKind found{};
  if (const int error = look_at_file(path, found); error != 0) return {Kind::kTlsCa, error, {}};
  if (found == FileKind::kOther) return {Kind::kTlsCa, 0, {}};
  const auto load = found == FileKind::kFolder ? library_.SSL_CTX_load_verify_dir
                                               : library_.SSL_CTX_load_verify_file;
  return load(context_, path.c_str()) == 1 ? DialFailure{} : refused(Kind::kTlsCa);
}

DialFailure Context::load_certificate() {
  if (settings_.cert.empty()) return {};
  if (auto why = check_file(Kind::kTlsCert, settings_.cert); !why.ok()) return why;
  if (auto why = check_file(Kind::kTlsKey, settings_.key); !why.ok()) return why;
  if (library_.SSL_CTX_use_certificate_chain_file(context_, settings_.cert.c_str()) != 1) {
    return refused(Kind::kTlsCert);
  }
  if (library_.SSL_CTX_use_PrivateKey_file(context_, settings_.key.c_str(), SSL_FILETYPE_PEM) !=
          1 ||
      library_.SSL_CTX_check_private_key(context_) != 1) {
    return refused(Kind::kTlsKey);
  }
  return {};
}

// Set the name to send (SNI) and, if `is_checked`, to verify in the certificate.
bool set_name(const OpenSsl &library, SSL *session, const std::string &name, bool is_checked) {
  in6_addr address{};
  const bool is_address = inet_pton(AF_INET, name.c_str(), &address) == 1 ||
                          inet_pton(AF_INET6, name.c_str(), &address) == 1;
  if (is_address) {  // RFC 6066: addresses are not sent
    X509_VERIFY_PARAM *parameters = library.SSL_get0_param(session);
    return !is_checked || library.X509_VERIFY_PARAM_set1_ip_asc(parameters, name.c_str()) == 1;
  }
  // SSL_ctrl() takes no const pointer, because other commands write.
  auto *asked = const_cast<char *>(name.c_str());
  // RFC 9525: only the alternative names count, and `*` is a whole label.
  library.SSL_set_hostflags(
      session, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  return library.SSL_ctrl(session, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                          asked) == 1 &&
         (!is_checked || library.SSL_set1_host(session, asked) == 1);
}

}  // namespace

DialFailure Tls::make(const Peer &peer, std::unique_ptr<Tls> &tls) {
  const InsideOpenSsl inside;
  std::string missing;
  const OpenSsl *library = openssl(missing);
  if (library == nullptr) return {Kind::kTlsMissing, 0, missing};
  Context context(*library, peer.tls);
  auto why = context.prepare();
  if (!why.ok()) return why;
  const std::string &name = peer.tls_name();
  tls.reset(new Tls(*library));
  SSL *session = tls->session_ = library->SSL_new(context.get());
  if (session == nullptr) throw std::bad_alloc();
  BIO *in = library->BIO_new(library->BIO_s_mem());
  BIO *out = library->BIO_new(library->BIO_s_mem());
  library->SSL_set_bio(session, in, out);  // the session owns them now
  if (in == nullptr || out == nullptr) throw std::bad_alloc();
  library->SSL_set_connect_state(session);
  if (set_name(*library, session, name, peer.tls.verify == TlsSettings::Verify::kFull)) {
    return {};
  }
  return {Kind::kTlsName, 0, {}};
}

Tls::~Tls() {
  const InsideOpenSsl inside;
  library_.SSL_free(session_);
}

Tls::Step Tls::shake_hands() {
  const InsideOpenSsl inside;
  library_.ERR_clear_error();
  const int result = library_.SSL_do_handshake(session_);
  if (result == 1) return Step::kDone;
  if (library_.SSL_get_error(session_, result) == SSL_ERROR_WANT_READ) return Step::kNeedsMore;
  note_failure(result);
  return Step::kFailed;
}

void Tls::put(std::span<const char> sealed) {
  BIO *in = library_.SSL_get_rbio(session_);
  const int size = static_cast<int>(sealed.size());
  // A memory BIO takes all bytes or, without memory, none.
  if (library_.BIO_write(in, sealed.data(), size) != size) throw std::bad_alloc();
}

std::optional<size_t> Tls::read(std::span<char> plain) {
  const InsideOpenSsl inside;
  library_.ERR_clear_error();
  const int n = library_.SSL_read(session_, plain.data(), static_cast<int>(plain.size()));
  if (n > 0) return static_cast<size_t>(n);
  if (library_.SSL_get_error(session_, n) == SSL_ERROR_WANT_READ) return 0;
  note_failure(n);
  return std::nullopt;
}

Tls::Step Tls::write(std::string_view plain) {
  assert(!plain.empty() && "SSL_write() of nothing is undefined");
  const InsideOpenSsl inside;
  library_.ERR_clear_error();
  // Writes all of it, because the BIO is memory.
  const int n = library_.SSL_write(session_, plain.data(), static_cast<int>(plain.size()));
  if (n > 0) return Step::kDone;
  if (library_.SSL_get_error(session_, n) == SSL_ERROR_WANT_READ) return Step::kNeedsMore;
  note_failure(n);
  return Step::kFailed;
}

void Tls::take(std::string &sealed) {
  BIO *out = library_.SSL_get_wbio(session_);
  const auto size = static_cast<size_t>(library_.BIO_ctrl(out, BIO_CTRL_PENDING, 0, nullptr));
  if (size == 0) return;
  const size_t start = sealed.size();
  sealed.resize(start + size);
  library_.BIO_read(out, sealed.data() + start, static_cast<int>(size));
}

void Tls::note_failure(int result) {
  if (library_.SSL_get_error(session_, result) == SSL_ERROR_ZERO_RETURN) return;
  const unsigned long code = library_.ERR_get_error();
  const int reason = error_library(code) == ERR_LIB_SSL ? error_reason(code) : 0;
  if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED) return note_verdict();
  const int alert = std::max(reason - SSL_AD_REASON_OFFSET, 0);
  why_ = {Kind::kTls, alert, text_of(library_, code)};
}

void Tls::note_verdict() {
  const long verdict = library_.SSL_get_verify_result(session_);
  why_ = {Kind::kCertificate, static_cast<int>(verdict),
          library_.X509_verify_cert_error_string(verdict)};
}

}  // namespace redlatch::net
