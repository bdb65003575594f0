// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// core/host for the module: random bytes only. Every event brings its time.
#include <cerrno>
#include <cstdlib>
#include <new>

#include "host.h"
#include "host/files.h"
#include "host/process.h"
#include "host/random.h"
#include "host/secret_line.h"

namespace redlatch {

int look_at_file(const std::string &, FileKind &) { return ENOTSUP; }

int working_folder(std::string &) { return ENOTSUP; }

const char *environment_variable(const char *) { return nullptr; }

std::string host_name() { return "wasm"; }

int64_t process_number() { return 0; }

int64_t user_number() { return 0; }

bool fill_random(std::span<uint8_t> bytes) {
  host_random(bytes.data(), bytes.size());
  return true;
}

std::string read_secret_line(const std::string &, LineSource, SecretLine &) {
  return "files are not supported";
}

}  // namespace redlatch

// Those of the C++ library abort without memory.
void *operator new(size_t size) {
  if (void *memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}

void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }
