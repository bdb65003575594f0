// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// A transfer between two accounts: both are locked together, or none, so that a transfer the other
// way round at the same time cannot deadlock. An account is a file with a number.
//
//     transfer redis://localhost:6379 accounts anna bert 5
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>

#include "redlatch/redlatch.hpp"

static long read_balance(const std::string& path) {
  long balance = 0;
  if (!(std::ifstream(path) >> balance)) throw std::runtime_error(path + " must have a number");
  return balance;
}

static void write_balance(const std::string& path, long balance) {
  if (!(std::ofstream(path) << balance << std::endl)) throw std::runtime_error(path);
}

static void transfer(const std::string& folder, const std::string& from, const std::string& to,
                     long amount) {
  const long source = read_balance(folder + "/" + from) - amount;
  const long target = read_balance(folder + "/" + to) + amount;
  if (source < 0) {
    std::cout << "refused: " << from << " has only " << source + amount << std::endl;
    return;
  }
  write_balance(folder + "/" + from, source);
  write_balance(folder + "/" + to, target);
  std::cout << "moved " << amount << ": " << from << " has " << source << ", " << to << " has "
            << target << std::endl;
}

int main(int argc, char** argv) {
  if (argc != 6) {
    std::cerr << "usage: transfer URL FOLDER FROM TO AMOUNT\n";
    return 64;
  }
  const std::string from = argv[3], to = argv[4];
  try {
    auto client = redlatch::client::open(argv[1]);
    // The order of the names does not matter.
    const auto both = redlatch::names().write("account/" + from).write("account/" + to);
    auto lease = client.acquire_all(both, redlatch::forever).value();
    transfer(argv[2], from, to, std::stol(argv[5]));
    lease.release();
  } catch (const std::exception& error) {
    std::cerr << "transfer: " << error.what() << '\n';
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
