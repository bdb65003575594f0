// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// A job that several hosts start at the same time, and that one of them does: a report, here the
// number of lines of the input. Whoever finds the lock taken skips it.
//
//     skip redis://localhost:6379 < access.log
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <iterator>

#include "redlatch/redlatch.hpp"

static void report() {
  const std::istreambuf_iterator<char> input(std::cin);
  std::cout << "done: " << std::count(input, {}, '\n') << " lines\n";
}

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: skip URL < FILE\n";
    return 64;
  }
  try {
    auto client = redlatch::client::open(argv[1]);
    if (auto lease = client.try_acquire("report")) {  // One try.
      std::cout << "begun" << std::endl;
      report();
      // Throws if the lock was lost meanwhile: somebody else may have done it too.
      lease->release();
    } else {
      std::cout << "skipped: another host does it\n";
    }
  } catch (const redlatch::error& error) {
    std::cerr << "skip: " << error.what() << '\n';
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
