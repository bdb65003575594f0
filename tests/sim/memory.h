// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// CoreMemory: counts what the product's code allocates, apart from what the simulator does. Every
// block remembers who asked for it. One thread.
#pragma once

#include <cstdint>

namespace redlatch::sim {

class CoreMemory {
 public:
  // Of blocks that were allocated inside a Scope and are still there.
  static int64_t bytes();

  // The product's code runs.
  class Scope {
   public:
    Scope();
    ~Scope();

   private:
    const bool before_;
  };
  // Within that, the simulator's.
  class Pause {
   public:
    Pause();
    ~Pause();

   private:
    const bool before_;
  };
};

}  // namespace redlatch::sim
