// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// A pool of three: of all processes that are started, on many hosts, three work at a time, and the
// others wait for their turn. The work is a report, here the number of lines of the input.
//
//     pool redis://localhost:6379 < access.log
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
    std::cerr << "usage: pool URL < FILE\n";
    return 64;
  }
  try {
    auto client = redlatch::client::open(argv[1]);
    const auto options = redlatch::acquire_options().set("limit", "3");
    auto lease = client.acquire("pool", redlatch::forever, options).value();
    std::cout << "begun" << std::endl;
    report();
    // Throws if the lease was lost meanwhile: more than three may have worked at the same time.
    lease.release();
  } catch (const redlatch::error& error) {
    std::cerr << "pool: " << error.what() << '\n';
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
