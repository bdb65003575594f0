// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// For LD_PRELOAD into the actor: making an object of 300 to 400 kB throws what no code of the
// library throws. Only the text of an error that a server has sent is as long.
#include <cstdlib>
#include <new>
#include <stdexcept>

#define SHOWN __attribute__((visibility("default")))

SHOWN void *operator new(std::size_t size) {
  constexpr std::size_t kFrom = 300'000;
  if (size >= kFrom && size < kFrom + 100'000) throw std::out_of_range("thrown by a test");
  void *made = std::malloc(size == 0 ? 1 : size);
  if (made == nullptr) throw std::bad_alloc();
  return made;
}

SHOWN void operator delete(void *made) noexcept { std::free(made); }
SHOWN void operator delete(void *made, std::size_t) noexcept { std::free(made); }
