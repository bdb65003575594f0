/* SPDX-License-Identifier: Apache-2.0
 * Copyright The redlatch authors
 *
 * What test_languages.py has in C++: for some ms it takes one of ten locks, holds it for a moment
 * and gives it back, over and over. How that went stands in its record.
 *
 *     system_member URL NAME MS SEED
 */
#include <chrono>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>

// Before the header, so that what it calls is written down.
#include "record.h"
#include "redlatch/redlatch.hpp"

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr int kKeys = 10;
constexpr int kOneTryIn = 8;
constexpr int kLongestHoldUs = 5000;
constexpr auto kWait = 20s;
constexpr auto kLease = 1s;

void hold_once(redlatch::client& client, const std::string& name, std::mt19937& random) {
  const std::string key = name + '\0' + std::to_string(random() % kKeys);
  const auto wait = random() % kOneTryIn == 0 ? 0s : kWait;
  auto lease = client.acquire(key, wait, redlatch::acquire_options().ttl(kLease));
  if (!lease) return;
  std::this_thread::sleep_for(std::chrono::microseconds(random() % kLongestHoldUs));
  lease->release();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const auto end = Clock::now() + std::chrono::milliseconds(std::atoi(argv[3]));
  std::mt19937 random(static_cast<unsigned>(std::atoi(argv[4])));
  auto client = redlatch::client::open(argv[1]);
  while (Clock::now() < end) {
    try {
      hold_once(client, argv[2], random);
    } catch (const redlatch::error&) {
      // A lease may be lost on a busy machine.
    }
  }
  return 0;
}
