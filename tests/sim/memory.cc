// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "memory.h"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

bool is_in_core = false;
int64_t core_bytes = 0;

struct alignas(std::max_align_t) Header {
  size_t size;
  bool is_core;
};

void *allocate(size_t size) {
  void *block = malloc(sizeof(Header) + size);
  if (block == nullptr) throw std::bad_alloc();
  auto *header = new (block) Header{size, is_in_core};
  if (is_in_core) core_bytes += static_cast<int64_t>(size);
  return header + 1;
}

void release(void *memory) {
  if (memory == nullptr) return;
  Header *header = static_cast<Header *>(memory) - 1;
  if (header->is_core) core_bytes -= static_cast<int64_t>(header->size);
  free(header);
}

}  // namespace

void *operator new(size_t size) { return allocate(size); }
void *operator new[](size_t size) { return allocate(size); }
void operator delete(void *memory) noexcept { release(memory); }
void operator delete[](void *memory) noexcept { release(memory); }
void operator delete(void *memory, size_t) noexcept { release(memory); }
void operator delete[](void *memory, size_t) noexcept { release(memory); }

namespace redlatch::sim {

int64_t CoreMemory::bytes() { return core_bytes; }

CoreMemory::Scope::Scope() : before_(is_in_core) { is_in_core = true; }
CoreMemory::Scope::~Scope() { is_in_core = before_; }
CoreMemory::Pause::Pause() : before_(is_in_core) { is_in_core = false; }
CoreMemory::Pause::~Pause() { is_in_core = before_; }

}  // namespace redlatch::sim
