// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "net/openssl.h"

#include <dlfcn.h>
#include <pthread.h>

#include <new>
#include <string>

#include "base/mutex.h"
#include "base/thread_annotations.h"

namespace redlatch::net {

namespace {

// The library whose ABI openssl.h declares.
constexpr const char *kLibrary = "libssl.so.3";

// Threads inside OpenSSL hold it for reading, a fork for writing. A fork that waits has precedence
// over new readers.
#ifdef PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP
#define REDLATCH_OPEN_TO_ALL PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP
#else  // musl has no such kind, so that a fork may wait longer there
#define REDLATCH_OPEN_TO_ALL PTHREAD_RWLOCK_INITIALIZER
#endif
pthread_rwlock_t g_forks = REDLATCH_OPEN_TO_ALL;

// Throws, so that the next connection tries again: without the handlers a child could not use
// OpenSSL.
bool watch_forks() {
  const int error = pthread_atfork([] { pthread_rwlock_wrlock(&g_forks); },
                                   [] { pthread_rwlock_unlock(&g_forks); },
                                   // Threads that waited for it do not exist in the child.
                                   [] { g_forks = REDLATCH_OPEN_TO_ALL; });
  if (error != 0) throw std::bad_alloc();
  return true;
}

// @return empty, or why OpenSSL could not be loaded.
std::string load(OpenSsl &functions) {
  // Never closed: OpenSSL registers destructors with each thread that uses it.
  void *library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return dlerror();
  const char *missing = nullptr;
  const auto find = [&](const char *name) {
    void *function = dlsym(library, name);  // also in libcrypto, on which it depends
    if (function == nullptr) missing = name;
    return function;
  };
#define REDLATCH_FIND(result, name, parameters) \
  functions.name = reinterpret_cast<decltype(functions.name)>(find(#name));
  REDLATCH_OPENSSL_FUNCTIONS(REDLATCH_FIND)
#undef REDLATCH_FIND
  if (missing != nullptr) return std::string(kLibrary) + " has no " + missing;
  // Threads of this library may run during exit(), when OpenSSL must not be cleaned up yet. If the
  // program has initialised OpenSSL itself, its choice stays.
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

const OpenSsl *openssl(std::string &missing) {
  static Mutex mutex;
  static OpenSsl functions GUARDED_BY(mutex);
  static bool is_loaded GUARDED_BY(mutex) = false;
  const MutexLock lock(mutex);
  if (is_loaded) return &functions;
  missing = load(functions);
  is_loaded = missing.empty();
  return is_loaded ? &functions : nullptr;
}

}  // namespace redlatch::net
