// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// What net/openssl.h declares is what the headers of OpenSSL declare. The compiler compares.
#include "net/openssl.h"

#include <gtest/gtest.h>
// After ours, whose names become macros here.
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <type_traits>

namespace redlatch::net {
namespace {

#define REDLATCH_SAME_FUNCTION(result, name, parameters) \
  static_assert(std::is_same_v<decltype(OpenSsl::name), decltype(&::name)>, #name);
REDLATCH_OPENSSL_FUNCTIONS(REDLATCH_SAME_FUNCTION)

// The first argument arrives as OpenSSL's number, because a macro has its name.
#define REDLATCH_SAME_NUMBER(name, value) static_assert((name) == (value), #name);
REDLATCH_OPENSSL_CONSTANTS(REDLATCH_SAME_NUMBER)

TEST(OpenSslTest, error_code_parts_match_the_macros_of_openssl) {
  const unsigned long codes[] = {0UL, ERR_PACK(ERR_LIB_SSL, 0, SSL_R_CERTIFICATE_VERIFY_FAILED),
                                 ERR_PACK(ERR_LIB_X509, 0, ERR_R_MALLOC_FAILURE),
                                 static_cast<unsigned long>(ERR_SYSTEM_FLAG) | 111UL};
  for (const unsigned long code : codes) {
    EXPECT_EQ(is_system_error(code), ERR_SYSTEM_ERROR(code)) << code;
    EXPECT_EQ(error_library(code), ERR_GET_LIB(code)) << code;
    EXPECT_EQ(error_reason(code), ERR_GET_REASON(code)) << code;
  }
}

}  // namespace
}  // namespace redlatch::net
