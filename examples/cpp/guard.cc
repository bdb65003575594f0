// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Several processes add to the number in a file; a lock keeps them from losing additions.
//
//     guard redis://localhost:6379 counter.txt 100
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <mutex>

#include "redlatch/redlatch.hpp"

static void add_one(const char* path) {
  long count = 0;
  std::ifstream(path) >> count;
  std::ofstream(path) << count + 1 << '\n';
}

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: guard URL FILE [TIMES]\n";
    return 64;
  }
  try {
    auto client = redlatch::client::open(argv[1]);
    redlatch::mutex counter(client, "counter");
    for (int left = argc > 3 ? std::atoi(argv[3]) : 1; left > 0; --left) {
      std::unique_lock lock(counter, std::chrono::seconds(30));
      if (!lock) return EXIT_FAILURE;
      add_one(argv[2]);
      // Throws if the lock was lost meanwhile: somebody else may have been inside too.
      counter.lease().check();
    }
  } catch (const redlatch::error& error) {
    std::cerr << "guard: " << error.what() << '\n';
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
