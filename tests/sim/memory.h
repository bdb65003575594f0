// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// CoreMemory: counts the memory of the product's code, without that of the simulator. Each block
// records which of the two has allocated it. One thread.
#pragma once

#include <cstdint>

namespace redlatch::sim {

class CoreMemory {
 public:
  // The size of all blocks that were allocated inside a Scope and not yet freed.
  static int64_t bytes();

  // Exists while the product's code runs.
  class Scope {
   public:
    Scope();
    ~Scope();

   private:
    const bool before_;
  };
  // Exists while the simulator's code runs within a Scope.
  class Pause {
   public:
    Pause();
    ~Pause();

   private:
    const bool before_;
  };
};

}  // namespace redlatch::sim
