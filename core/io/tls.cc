// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "io/tls.h"

#include <arpa/inet.h>
#include <sys/stat.h>

#include <new>
#include <utility>

#include "base/text.h"
#include "io/openssl.h"

namespace redlatch::io {

namespace {

// The first thing that OpenSSL complained of in this thread.
std::string complaint(const OpenSsl &library, int &reason) {
  const unsigned long code = library.ERR_get_error();
  reason = ERR_GET_REASON(code);
  const char *text = code == 0 ? nullptr : library.ERR_reason_error_string(code);
  return text == nullptr ? "the connection was cut" : text;
}

std::string complaint(const OpenSsl &library) {
  int reason = 0;
  return complaint(library, reason);
}

// Without it, OpenSSL asks at the terminal.
int no_passphrase(char * /*buffer*/, int /*size*/, int /*rwflag*/, void * /*data*/) { return 0; }

bool is_folder(const std::string &path) {
  struct stat seen {};
  return stat(path.c_str(), &seen) == 0 && S_ISDIR(seen.st_mode);
}

// What is the same for all connections of a client, for the time of one of them.
class Context {
 public:
  Context(const OpenSsl &library, const TlsSettings &settings)
      : library_(library),
        settings_(settings),
        context_(library.SSL_CTX_new(library.TLS_client_method())) {
    if (context_ == nullptr) throw std::bad_alloc();
  }
  ~Context() { library_.SSL_CTX_free(context_); }
  Context(const Context &) = delete;
  Context &operator=(const Context &) = delete;

  Outcome prepare();
  SSL_CTX *get() const { return context_; }

 private:
  Outcome load_authorities();
  Outcome load_certificate();
  Outcome unusable(const char *option, const std::string &path) const;

  const OpenSsl &library_;
  const TlsSettings &settings_;
  SSL_CTX *context_;
};

Outcome Context::unusable(const char *option, const std::string &path) const {
  return failure(Status::kInvalid, std::string("option '") + option + "': " + quoted(path, 256) +
                                       " cannot be used: " + complaint(library_));
}

Outcome Context::prepare() {
  library_.ERR_clear_error();
  // RFC 8996: 1.0 and 1.1 must not be used.
  library_.SSL_CTX_ctrl(context_, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, nullptr);
  // A server has no reason to begin anew; what it could make us keep then has no limit.
  library_.SSL_CTX_set_options(context_, SSL_OP_NO_RENEGOTIATION);
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
    return failure(Status::kInvalid, "the system's authorities cannot be used: " +
                                         complaint(library_) + "; the option tls_ca names others");
  }
  const bool is_list = !is_folder(path);
  const int result = library_.SSL_CTX_load_verify_locations(
      context_, is_list ? path.c_str() : nullptr, is_list ? nullptr : path.c_str());
  return result == 1 ? Outcome{} : unusable("tls_ca", path);
}

Outcome Context::load_certificate() {
  if (settings_.cert.empty()) return {};
  if (library_.SSL_CTX_use_certificate_chain_file(context_, settings_.cert.c_str()) != 1) {
    return unusable("tls_cert", settings_.cert);
  }
  if (library_.SSL_CTX_use_PrivateKey_file(context_, settings_.key.c_str(), SSL_FILETYPE_PEM) !=
          1 ||
      library_.SSL_CTX_check_private_key(context_) != 1) {
    return unusable("tls_key", settings_.key);
  }
  return {};
}

// Whom to ask for, and, if that is to be checked, whose certificate it must be.
bool set_name(const OpenSsl &library, SSL *session, const std::string &name, bool is_checked) {
  in6_addr address{};
  const bool is_address = inet_pton(AF_INET, name.c_str(), &address) == 1 ||
                          inet_pton(AF_INET6, name.c_str(), &address) == 1;
  if (is_address) {  // RFC 6066: not one to ask for
    X509_VERIFY_PARAM *parameters = library.SSL_get0_param(session);
    return !is_checked || library.X509_VERIFY_PARAM_set1_ip_asc(parameters, name.c_str()) == 1;
  }
  // The parameter is not const for the sake of other uses of this function.
  auto *asked = const_cast<char *>(name.c_str());
  return library.SSL_ctrl(session, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                          asked) == 1 &&
         (!is_checked || library.SSL_set1_host(session, asked) == 1);
}

}  // namespace

Outcome Tls::make(const Settings &settings, std::unique_ptr<Tls> &tls) {
  Outcome outcome;
  const OpenSsl *library = openssl(outcome);
  if (library == nullptr) return outcome;
  Context context(*library, settings.tls);
  outcome = context.prepare();
  if (!outcome.ok()) return outcome;
  const std::string &name = settings.tls.sni.empty() ? settings.host : settings.tls.sni;
  SSL *session = library->SSL_new(context.get());
  if (session == nullptr) throw std::bad_alloc();
  tls.reset(new Tls(*library, session, settings.address(), name));
  BIO *in = library->BIO_new(library->BIO_s_mem());
  BIO *out = library->BIO_new(library->BIO_s_mem());
  library->SSL_set_bio(session, in, out);  // they are the session's now
  if (in == nullptr || out == nullptr) throw std::bad_alloc();
  library->SSL_set_connect_state(session);
  if (set_name(*library, session, name, settings.tls.verify == TlsSettings::Verify::kFull)) {
    return {};
  }
  return failure(Status::kInvalid, quoted(name, 256) + " is no name that TLS could ask for");
}

Tls::Tls(const OpenSsl &library, ssl_st *session, std::string address, std::string name)
    : library_(library), session_(session), address_(std::move(address)), name_(std::move(name)) {}

Tls::~Tls() { library_.SSL_free(session_); }

Tls::Step Tls::shake_hands() {
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
  // One in memory takes all or, without memory, nothing.
  if (library_.BIO_write(in, sealed.data(), size) != size) throw std::bad_alloc();
}

std::optional<size_t> Tls::read(std::span<char> plain) {
  library_.ERR_clear_error();
  const int n = library_.SSL_read(session_, plain.data(), static_cast<int>(plain.size()));
  if (n > 0) return static_cast<size_t>(n);
  if (library_.SSL_get_error(session_, n) == SSL_ERROR_WANT_READ) return 0;
  note_failure(n);
  return std::nullopt;
}

bool Tls::write(std::string_view plain) {
  library_.ERR_clear_error();
  // All of it, because what takes it is memory.
  const int n = library_.SSL_write(session_, plain.data(), static_cast<int>(plain.size()));
  if (n > 0) return true;
  note_failure(n);
  return false;
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
  int reason = 0;
  const std::string text = complaint(library_, reason);
  if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED) {
    const long verdict = library_.SSL_get_verify_result(session_);
    const bool is_for_another =
        verdict == X509_V_ERR_HOSTNAME_MISMATCH || verdict == X509_V_ERR_IP_ADDRESS_MISMATCH;
    const bool is_unknown = verdict == X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN ||
                            verdict == X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT ||
                            verdict == X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY;
    std::string hint;
    if (is_for_another) hint = ", it is not for " + quoted(name_, 256);
    if (is_unknown) hint = "; the option tls_ca names authorities to trust";
    why_ = failure(Status::kDenied, "the certificate of " + address_ + " is not accepted: " +
                                        library_.X509_verify_cert_error_string(verdict) + hint);
  } else if (reason > SSL_AD_REASON_OFFSET) {
    const bool is_version = reason == SSL_R_TLSV1_ALERT_PROTOCOL_VERSION;
    why_ = failure(is_version ? Status::kUnsupported : Status::kDenied,
                   address_ + " refused the connection by TLS: " + text);
  } else {
    why_ = failure(Status::kUnsupported, address_ + " does not speak TLS as it should: " + text);
  }
}

}  // namespace redlatch::io
