// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Several processes stand by, and one of them leads until it ends, or loses the term: then it stops
// its work and stands by again.
//
//     leader redis://localhost:6379 [ID]
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

#include "redlatch/redlatch.hpp"

using namespace std::chrono_literals;

// A process that is paused in a step continues it: the fence lets others refuse that.
static void work(int64_t fence) { std::cout << "works, fence " << fence << std::endl; }

static void lead(redlatch::lease& lease) try {
  std::cout << "leads, fence " << lease.fence() << std::endl;
  // A loss ends the wait of 100 ms at once.
  while (rl_lease_wait_lost(lease.get(), 100) == RL_LEASE_HELD) work(lease.fence());
  lease.check();
} catch (const redlatch::error& error) {
  std::cout << "stopped: " << error.what() << std::endl;
}

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::cerr << "usage: leader URL [ID]\n";
    return 64;
  }
  const std::string id = argc == 3 ? argv[2] : "process " + std::to_string(getpid());
  try {
    auto client = redlatch::client::open(argv[1]);
    // The next one leads at the latest 3 s after this one has crashed. It stands by as long as it
    // takes, also while the server is away.
    while (auto term = redlatch::campaign(client, "leader", id, redlatch::forever,
                                          redlatch::acquire_options().ttl(3s))) {
      lead(*term);
    }
  } catch (const redlatch::error& error) {
    std::cerr << "leader: " << error.what() << '\n';
  }
  return EXIT_FAILURE;
}
