// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// A report that every host starts each night, and that one of them makes: once for each day. If it
// fails there, another host may try.
//
//     nightly redis://localhost:6379 "$(date +%F)"
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>

#include "redlatch/redlatch.hpp"

using namespace std::chrono_literals;

// An exception of the report would leave the next host a try.
static void report(const std::string& day) { std::cout << "done: the report of " << day << '\n'; }

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: nightly URL DAY\n";
    return 64;
  }
  try {
    auto client = redlatch::client::open(argv[1]);
    const std::string day = argv[2];
    redlatch::once_options nightly;
    nightly.every = 48h;
    nightly.key = day;
    if (!redlatch::once(client, "nightly", nightly, [&] { report(day); })) {
      std::cout << "skipped: the report of " << day << " is done\n";
    }
  } catch (const redlatch::error& error) {
    std::cerr << "nightly: " << error.what() << '\n';
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
