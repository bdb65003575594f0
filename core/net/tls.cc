// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "net/tls.h"

#include <arpa/inet.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <new>
#include <system_error>
#include <utility>

#include "base/text.h"
#include "net/openssl.h"

namespace redlatch::net {

namespace {

std::string text_of(const OpenSsl &library, unsigned long code) {
  if (error_reason(code) == ERR_R_MALLOC_FAILURE) throw std::bad_alloc();
  if (is_system_error(code)) return std::generic_category().message(error_reason(code));
  const char *text = code == 0 ? nullptr : library.ERR_reason_error_string(code);
  return text == nullptr ? "no reason given" : text;
}

// Without this callback OpenSSL asks for a passphrase at the terminal.
int no_passphrase(char * /*buffer*/, int /*size*/, int /*rwflag*/, void * /*data*/) { return 0; }

// The type of the file; 0, with errno, if it has none.
mode_t kind_of(const std::string &path) {
  struct stat seen {};
  return stat(path.c_str(), &seen) == 0 ? seen.st_mode & S_IFMT : 0;
}

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

  Outcome prepare();
  SSL_CTX *get() const { return context_; }

 private:
  Outcome load_authorities();
  Outcome load_certificate();
  std::string complaint() const { return text_of(library_, library_.ERR_get_error()); }
  Outcome unusable(const char *option, const std::string &path, const std::string &why) const;
  Outcome check_file(const char *option, const std::string &path) const;

  const OpenSsl &library_;
  const TlsSettings &settings_;
  SSL_CTX *const context_;
};

Outcome Context::unusable(const char *option, const std::string &path,
                          const std::string &why) const {
  return failure(Status::kInvalid, "option '" + settings_.option(option) +
                                       "': " + quoted(path, 256) + " cannot be used: " + why);
}

// OpenSSL would block for any time on a pipe or a device.
Outcome Context::check_file(const char *option, const std::string &path) const {
  const mode_t kind = kind_of(path);
  if (kind == 0) return unusable(option, path, std::generic_category().message(errno));
  return kind == S_IFREG ? Outcome{} : unusable(option, path, "it is not a file");
}

Outcome Context::prepare() {
  if (context_ == nullptr) {
    return failure(Status::kUnsupported, "OpenSSL of this host cannot be used: " + complaint());
  }
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
    if (auto outcome = load_authorities(); !outcome.ok()) return outcome;
  }
  return load_certificate();
}

Outcome Context::load_authorities() {
  const std::string &path = settings_.ca;
  if (path.empty()) {
    if (library_.SSL_CTX_set_default_verify_paths(context_) == 1) return {};
    return failure(Status::kInvalid, "the system's authorities cannot be used: " + complaint() +
                                         "; the option " + settings_.option("tls_ca") +
                                         " names others");
  }
  const bool is_folder = kind_of(path) == S_IFDIR;
  if (!is_folder) {
    if (auto outcome = check_file("tls_ca", path); !outcome.ok()) return outcome;
  }
  const auto load =
      is_folder ? library_.SSL_CTX_load_verify_dir : library_.SSL_CTX_load_verify_file;
  return load(context_, path.c_str()) == 1 ? Outcome{} : unusable("tls_ca", path, complaint());
}

Outcome Context::load_certificate() {
  if (settings_.cert.empty()) return {};
  if (auto outcome = check_file("tls_cert", settings_.cert); !outcome.ok()) return outcome;
  if (auto outcome = check_file("tls_key", settings_.key); !outcome.ok()) return outcome;
  if (library_.SSL_CTX_use_certificate_chain_file(context_, settings_.cert.c_str()) != 1) {
    return unusable("tls_cert", settings_.cert, complaint());
  }
  if (library_.SSL_CTX_use_PrivateKey_file(context_, settings_.key.c_str(), SSL_FILETYPE_PEM) !=
          1 ||
      library_.SSL_CTX_check_private_key(context_) != 1) {
    return unusable("tls_key", settings_.key, complaint());
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

// True if this alert of the server (RFC 8446, 6.2) is permanent: a retry will not help.
bool will_not_pass(int alert) {
  constexpr std::array kFinal = {SSL_AD_HANDSHAKE_FAILURE,
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
  return std::find(kFinal.begin(), kFinal.end(), alert) != kFinal.end();
}

}  // namespace

Outcome Tls::make(const Settings &settings, std::unique_ptr<Tls> &tls) {
  const InsideOpenSsl inside;
  Outcome outcome;
  const OpenSsl *library = openssl(outcome);
  if (library == nullptr) return outcome;
  Context context(*library, settings.tls);
  outcome = context.prepare();
  if (!outcome.ok()) return outcome;
  const std::string &name = settings.tls.sni.empty() ? settings.host : settings.tls.sni;
  tls.reset(new Tls(*library, settings, name));
  SSL *session = tls->session_ = library->SSL_new(context.get());
  if (session == nullptr) throw std::bad_alloc();
  BIO *in = library->BIO_new(library->BIO_s_mem());
  BIO *out = library->BIO_new(library->BIO_s_mem());
  library->SSL_set_bio(session, in, out);  // the session owns them now
  if (in == nullptr || out == nullptr) throw std::bad_alloc();
  library->SSL_set_connect_state(session);
  if (set_name(*library, session, name, settings.tls.verify == TlsSettings::Verify::kFull)) {
    return {};
  }
  return failure(Status::kInvalid, quoted(name, 256) + " is not a valid TLS server name");
}

Tls::Tls(const OpenSsl &library, const Settings &settings, std::string name)
    : library_(library),
      address_(settings.address()),
      name_(std::move(name)),
      sni_option_(settings.tls.option("tls_sni")),
      ca_option_(settings.tls.option("tls_ca")) {}

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
  const int alert = reason - SSL_AD_REASON_OFFSET;
  const std::string text = text_of(library_, code);
  if (will_not_pass(alert)) {
    const bool is_version = alert == SSL_AD_PROTOCOL_VERSION;
    why_ = failure(is_version ? Status::kUnsupported : Status::kDenied,
                   address_ + " refused the connection over TLS: " + text);
  } else {
    why_ = failure(Status::kUnavailable, "cannot reach " + address_ + " over TLS: " + text);
  }
}

void Tls::note_verdict() {
  const long verdict = library_.SSL_get_verify_result(session_);
  std::string hint;
  if (verdict == X509_V_ERR_HOSTNAME_MISMATCH || verdict == X509_V_ERR_IP_ADDRESS_MISMATCH) {
    hint =
        ", it is not for " + quoted(name_, 256) + "; the option " + sni_option_ + " names another";
  }
  if (verdict == X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN ||
      verdict == X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT ||
      verdict == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY) {
    hint = "; the option " + ca_option_ +
           " names authorities to trust, a file, or a folder with their hashes";
  }
  why_ = failure(Status::kDenied, "the certificate of " + address_ + " is not accepted: " +
                                      library_.X509_verify_cert_error_string(verdict) + hint);
}

}  // namespace redlatch::net
