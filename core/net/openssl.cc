// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "net/openssl.h"

#include <dlfcn.h>
#include <pthread.h>

#include <mutex>
#include <new>
#include <string>

namespace redlatch::net {

namespace {

// The name has the version of the ABI that the headers above are of.
constexpr const char *kLibrary = "libssl.so.3";

// Readers are inside; a fork writes, and does not let more in while it waits.
#define REDLATCH_OPEN_TO_ALL PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP
pthread_rwlock_t g_forks = REDLATCH_OPEN_TO_ALL;

// Thrown, so that the next connection tries again: a child could not use OpenSSL otherwise.
bool watch_forks() {
  const int error = pthread_atfork([] { pthread_rwlock_wrlock(&g_forks); },
                                   [] { pthread_rwlock_unlock(&g_forks); },
                                   // Those who waited for it are not in the child.
                                   [] { g_forks = REDLATCH_OPEN_TO_ALL; });
  if (error != 0) throw std::bad_alloc();
  return true;
}

// @return why not; empty: it is loaded.
std::string load(OpenSsl &functions) {
  // Never closed: OpenSSL leaves destructors with each thread that has used it.
  void *library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return dlerror();
  const char *missing = nullptr;
  const auto find = [&](const char *name) {
    void *function = dlsym(library, name);  // also in libcrypto, on which it depends
    if (function == nullptr) missing = name;
    return function;
  };
#define REDLATCH_FIND(name) functions.name = reinterpret_cast<decltype(&::name)>(find(#name));
  REDLATCH_OPENSSL_FUNCTIONS(REDLATCH_FIND)
#undef REDLATCH_FIND
  if (missing != nullptr) return std::string(kLibrary) + " has no " + missing;
  // Threads of this library may outlive exit(), and should not find OpenSSL taken down then. Where
  // the program uses it too, that has been decided before.
  if (functions.OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, nullptr) == 1) return {};
  return std::string(kLibrary) + " could not be initialised";
}

}  // namespace

InsideOpenSsl::InsideOpenSsl() {
  static const bool is_watching = watch_forks();
  (void)is_watching;
  pthread_rwlock_rdlock(&g_forks);
}

InsideOpenSsl::~InsideOpenSsl() { pthread_rwlock_unlock(&g_forks); }

const OpenSsl *openssl(Outcome &why) {
  static std::mutex mutex;  // of both below, which stay for the same threads
  static OpenSsl functions;
  static bool is_loaded = false;
  const std::lock_guard lock(mutex);
  if (is_loaded) return &functions;
  const std::string missing = load(functions);
  is_loaded = missing.empty();
  if (is_loaded) return &functions;
  why = failure(Status::kUnsupported, "TLS needs OpenSSL 3 on this host: " + missing);
  return nullptr;
}

}  // namespace redlatch::net
