// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "io/openssl.h"

#include <dlfcn.h>

#include <string>

namespace redlatch::io {

namespace {

// The name has the version of the ABI that the headers above are of.
constexpr const char *kLibrary = "libssl.so.3";

struct Loaded {
  OpenSsl functions;
  std::string missing;  // why it cannot be used
};

Loaded load() {
  Loaded loaded;
  // Never closed: OpenSSL leaves destructors with each thread that has used it.
  void *library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    loaded.missing = dlerror();
    return loaded;
  }
  const auto find = [&](const char *name) {
    void *function = dlsym(library, name);  // also in libcrypto, on which it depends
    if (function == nullptr) loaded.missing = std::string(kLibrary) + " has no " + name;
    return function;
  };
#define REDLATCH_FIND(name) \
  loaded.functions.name = reinterpret_cast<decltype(&::name)>(find(#name));
  REDLATCH_OPENSSL_FUNCTIONS(REDLATCH_FIND)
#undef REDLATCH_FIND
  if (!loaded.missing.empty()) return loaded;
  // Threads of this library may outlive exit(), and must not find OpenSSL taken down then.
  if (loaded.functions.OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, nullptr) != 1) {
    loaded.missing = std::string(kLibrary) + " could not be initialised";
  }
  return loaded;
}

}  // namespace

const OpenSsl *openssl(Outcome &why) {
  // Never freed, for the same threads.
  static const Loaded &loaded = *new Loaded(load());
  if (loaded.missing.empty()) return &loaded.functions;
  why = failure(Status::kUnsupported, "TLS needs OpenSSL 3 on this host: " + loaded.missing);
  return nullptr;
}

}  // namespace redlatch::io
