// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// A cache that many processes read at the same time, and that one of them refreshes when it is too
// old, while the others wait for the new value.
//
//     cache redis://localhost:6379 cache.txt
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include "redlatch/redlatch.hpp"

using namespace std::chrono_literals;

static bool is_fresh(const char* path) {
  std::error_code missing;
  const auto written = std::filesystem::last_write_time(path, missing);
  return !missing && written + 60s > std::filesystem::file_time_type::clock::now();
}

// Something slow, such as a query.
static void refresh(const char* path) {
  std::this_thread::sleep_for(1s);
  std::ofstream(path) << "value of process " << getpid() << '\n';
  std::cout << "refreshed\n";
}

static void show(const char* path) { std::cout << std::ifstream(path).rdbuf(); }

static void read_or_refresh(redlatch::shared_mutex& cache, const char* path) {
  {
    std::shared_lock reading(cache);
    if (is_fresh(path)) return show(path);
  }
  std::unique_lock writing(cache);
  // Another may have refreshed it while this one waited.
  if (!is_fresh(path)) refresh(path);
  show(path);
  // Throws if the lock was lost meanwhile: somebody else may have refreshed it too.
  cache.lease().check();
}

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: cache URL FILE\n";
    return 64;
  }
  try {
    auto client = redlatch::client::open(argv[1]);
    redlatch::shared_mutex cache(client, "cache");
    read_or_refresh(cache, argv[2]);
  } catch (const redlatch::error& error) {
    std::cerr << "cache: " << error.what() << '\n';
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
