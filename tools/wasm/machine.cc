// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// core/host for the module. There are no environment, no files and no clock: every event brings its
// time.
#include <array>
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

std::string host_name() {
  std::array<char, 256> name{};
  return {name.data(), host_host_name(name.data(), name.size())};
}

int64_t process_number() { return host_process_number(); }

int64_t user_number() { return 0; }

bool fill_random(std::span<uint8_t> bytes) {
  host_random(bytes.data(), bytes.size());
  return true;
}

std::string read_secret_line(const std::string &, LineSource, SecretLine &) {
  return "there are no files here";
}

}  // namespace redlatch

// Those of the C++ library end the module instead.
void *operator new(size_t size) {
  if (void *memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}

void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }
