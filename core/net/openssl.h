// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The functions of OpenSSL, which the first TLS connection loads, and which stays loaded. Programs
// without TLS need no OpenSSL. Others use the one that the process has loaded, else that of the
// system, with its security updates and its list of authorities (docs/design/0013).
#pragma once

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/status.h"

namespace redlatch::net {

#define REDLATCH_OPENSSL_FUNCTIONS(F)   \
  F(BIO_ctrl)                           \
  F(BIO_new)                            \
  F(BIO_read)                           \
  F(BIO_s_mem)                          \
  F(BIO_write)                          \
  F(ERR_clear_error)                    \
  F(ERR_get_error)                      \
  F(ERR_reason_error_string)            \
  F(OPENSSL_init_ssl)                   \
  F(SSL_CTX_check_private_key)          \
  F(SSL_CTX_ctrl)                       \
  F(SSL_CTX_free)                       \
  F(SSL_CTX_load_verify_dir)            \
  F(SSL_CTX_load_verify_file)           \
  F(SSL_CTX_new)                        \
  F(SSL_CTX_set_default_passwd_cb)      \
  F(SSL_CTX_set_default_verify_paths)   \
  F(SSL_CTX_set_options)                \
  F(SSL_CTX_set_verify)                 \
  F(SSL_CTX_use_PrivateKey_file)        \
  F(SSL_CTX_use_certificate_chain_file) \
  F(SSL_ctrl)                           \
  F(SSL_do_handshake)                   \
  F(SSL_free)                           \
  F(SSL_get0_param)                     \
  F(SSL_get_error)                      \
  F(SSL_get_rbio)                       \
  F(SSL_get_verify_result)              \
  F(SSL_get_wbio)                       \
  F(SSL_new)                            \
  F(SSL_read)                           \
  F(SSL_set1_host)                      \
  F(SSL_set_bio)                        \
  F(SSL_set_connect_state)              \
  F(SSL_set_hostflags)                  \
  F(SSL_write)                          \
  F(TLS_client_method)                  \
  F(X509_VERIFY_PARAM_set1_ip_asc)      \
  F(X509_verify_cert_error_string)

struct OpenSsl {
#define REDLATCH_MEMBER(name) decltype(&::name) name = nullptr;
  REDLATCH_OPENSSL_FUNCTIONS(REDLATCH_MEMBER)
#undef REDLATCH_MEMBER
};

// Exists while a thread is inside OpenSSL. A fork waits until none exists: a mutex of OpenSSL that
// another thread has locked would stay locked in the child.
class InsideOpenSsl {
 public:
  InsideOpenSsl();
  ~InsideOpenSsl();
  InsideOpenSsl(const InsideOpenSsl &) = delete;
  InsideOpenSsl &operator=(const InsideOpenSsl &) = delete;
};

// Load OpenSSL, once. Any thread. @return nullptr if this host has none; `why` names what is
// missing.
const OpenSsl *openssl(Outcome &why);

}  // namespace redlatch::net
