// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The functions of OpenSSL, which the first TLS connection loads, and which stays loaded. Programs
// without TLS need no OpenSSL. Others use the one that the process has loaded, else that of the
// system, with its security updates and its list of authorities (docs/design/0013).
//
// The declarations here are those of OpenSSL's headers, as far as the library uses them, so that a
// build needs no OpenSSL. tests/unit/openssl_test.cc compares them with the headers.
#pragma once

#include <cstdint>
#include <string>

// The types, as OpenSSL declares them.
typedef struct bio_method_st BIO_METHOD;
typedef struct bio_st BIO;
typedef struct ossl_init_settings_st OPENSSL_INIT_SETTINGS;
typedef struct ssl_ctx_st SSL_CTX;
typedef struct ssl_method_st SSL_METHOD;
typedef struct ssl_st SSL;
typedef struct x509_store_ctx_st X509_STORE_CTX;
typedef struct X509_VERIFY_PARAM_st X509_VERIFY_PARAM;

namespace redlatch::net {

// Result, name and parameters of each function.
#define REDLATCH_OPENSSL_FUNCTIONS(F)                                                    \
  F(long, BIO_ctrl, (BIO *, int, long, void *))                                          \
  F(BIO *, BIO_new, (const BIO_METHOD *))                                                \
  F(int, BIO_read, (BIO *, void *, int))                                                 \
  F(const BIO_METHOD *, BIO_s_mem, ())                                                   \
  F(int, BIO_write, (BIO *, const void *, int))                                          \
  F(void, ERR_clear_error, ())                                                           \
  F(unsigned long, ERR_get_error, ())                                                    \
  F(const char *, ERR_reason_error_string, (unsigned long))                              \
  F(int, OPENSSL_init_ssl, (uint64_t, const OPENSSL_INIT_SETTINGS *))                    \
  F(int, SSL_CTX_check_private_key, (const SSL_CTX *))                                   \
  F(long, SSL_CTX_ctrl, (SSL_CTX *, int, long, void *))                                  \
  F(void, SSL_CTX_free, (SSL_CTX *))                                                     \
  F(int, SSL_CTX_load_verify_dir, (SSL_CTX *, const char *))                             \
  F(int, SSL_CTX_load_verify_file, (SSL_CTX *, const char *))                            \
  F(SSL_CTX *, SSL_CTX_new, (const SSL_METHOD *))                                        \
  F(void, SSL_CTX_set_default_passwd_cb, (SSL_CTX *, int (*)(char *, int, int, void *))) \
  F(int, SSL_CTX_set_default_verify_paths, (SSL_CTX *))                                  \
  F(uint64_t, SSL_CTX_set_options, (SSL_CTX *, uint64_t))                                \
  F(void, SSL_CTX_set_verify, (SSL_CTX *, int, int (*)(int, X509_STORE_CTX *)))          \
  F(int, SSL_CTX_use_PrivateKey_file, (SSL_CTX *, const char *, int))                    \
  F(int, SSL_CTX_use_certificate_chain_file, (SSL_CTX *, const char *))                  \
  F(long, SSL_ctrl, (SSL *, int, long, void *))                                          \
  F(int, SSL_do_handshake, (SSL *))                                                      \
  F(void, SSL_free, (SSL *))                                                             \
  F(X509_VERIFY_PARAM *, SSL_get0_param, (SSL *))                                        \
  F(int, SSL_get_error, (const SSL *, int))                                              \
  F(BIO *, SSL_get_rbio, (const SSL *))                                                  \
  F(long, SSL_get_verify_result, (const SSL *))                                          \
  F(BIO *, SSL_get_wbio, (const SSL *))                                                  \
  F(SSL *, SSL_new, (SSL_CTX *))                                                         \
  F(int, SSL_read, (SSL *, void *, int))                                                 \
  F(int, SSL_set1_host, (SSL *, const char *))                                           \
  F(void, SSL_set_bio, (SSL *, BIO *, BIO *))                                            \
  F(void, SSL_set_connect_state, (SSL *))                                                \
  F(void, SSL_set_hostflags, (SSL *, unsigned int))                                      \
  F(int, SSL_write, (SSL *, const void *, int))                                          \
  F(const SSL_METHOD *, TLS_client_method, ())                                           \
  F(int, X509_VERIFY_PARAM_set1_ip_asc, (X509_VERIFY_PARAM *, const char *))             \
  F(const char *, X509_verify_cert_error_string, (long))

// Numbers of the ABI, with the names that OpenSSL has for them.
#define REDLATCH_OPENSSL_CONSTANTS(C)        \
  C(BIO_CTRL_PENDING, 10)                    \
  C(ERR_LIB_SSL, 20)                         \
  C(ERR_R_MALLOC_FAILURE, 786688)            \
  C(OPENSSL_INIT_NO_ATEXIT, 524288)          \
  C(SSL_AD_REASON_OFFSET, 1000)              \
  C(SSL_CTRL_GET_MIN_PROTO_VERSION, 130)     \
  C(SSL_CTRL_MODE, 33)                       \
  C(SSL_CTRL_SET_MIN_PROTO_VERSION, 123)     \
  C(SSL_CTRL_SET_TLSEXT_HOSTNAME, 55)        \
  C(SSL_ERROR_WANT_READ, 2)                  \
  C(SSL_ERROR_ZERO_RETURN, 6)                \
  C(SSL_FILETYPE_PEM, 1)                     \
  C(SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER, 2)  \
  C(SSL_OP_NO_RENEGOTIATION, 1073741824)     \
  C(SSL_R_CERTIFICATE_VERIFY_FAILED, 134)    \
  C(SSL_VERIFY_NONE, 0)                      \
  C(SSL_VERIFY_PEER, 1)                      \
  C(TLS1_2_VERSION, 771)                     \
  C(TLSEXT_NAMETYPE_host_name, 0)            \
  C(X509_CHECK_FLAG_NEVER_CHECK_SUBJECT, 32) \
  C(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS, 4)

struct OpenSsl {
#define REDLATCH_MEMBER(result, name, parameters) result(*name) parameters = nullptr;
  REDLATCH_OPENSSL_FUNCTIONS(REDLATCH_MEMBER)
#undef REDLATCH_MEMBER
};

#define REDLATCH_NUMBER(name, value) inline constexpr int name = value;
REDLATCH_OPENSSL_CONSTANTS(REDLATCH_NUMBER)
#undef REDLATCH_NUMBER

// The parts of an error code: inline functions in OpenSSL too.
constexpr bool is_system_error(unsigned long code) { return (code & 0x80000000UL) != 0; }
constexpr int error_library(unsigned long code) {
  return is_system_error(code) ? 2 : static_cast<int>((code >> 23) & 0xff);
}
constexpr int error_reason(unsigned long code) {
  return static_cast<int>(code & (is_system_error(code) ? 0x7fffffffUL : 0x7fffffUL));
}

// Exists while a thread is inside OpenSSL. A fork waits until none exists: a mutex of OpenSSL that
// another thread has locked would stay locked in the child.
class InsideOpenSsl {
 public:
  InsideOpenSsl();
  ~InsideOpenSsl();
  InsideOpenSsl(const InsideOpenSsl &) = delete;
  InsideOpenSsl &operator=(const InsideOpenSsl &) = delete;
};

// Load OpenSSL, once. Any thread. @return nullptr if this host has none; `missing` says what it
// lacks.
const OpenSsl *openssl(std::string &missing);

}  // namespace redlatch::net
