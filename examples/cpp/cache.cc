// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// A value that many processes want, and that takes long to compute: one of them computes it, the
// others get its value, and so does every caller for a minute.
//
//     cache redis://localhost:6379
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>

#include "redlatch/redlatch.hpp"

using namespace std::chrono_literals;

// Something slow, such as a query.
static std::string compute() {
  std::cout << "computed\n";
  std::this_thread::sleep_for(1s);
  return "value of process " + std::to_string(getpid());
}

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: cache URL\n";
    return 64;
  }
  try {
    auto client = redlatch::client::open(argv[1]);
    std::cout << redlatch::single_flight(client, "cache", 1min, compute, 30s) << '\n';
  } catch (const redlatch::error& error) {
    std::cerr << "cache: " << error.what() << '\n';
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
