// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Many threads, each with a key of its own.
//
//   port scripts      the server, and the folder of the composed scripts
//   threads           how many
//   rounds seconds    each round: so many seconds of each candidate
//   only              all, or one candidate (for a profile)
//
// Candidates: library (all threads share one client); permit (the same with a semaphore each);
// plain (SET NX PX and compare-and-delete, a connection per thread); scripts (the library's own
// scripts, a connection per thread); pipeline (the same scripts for all keys at once, one
// connection, one thread: what the server can do).
// Prints cycles per second, and CPU time and context switches of this process per cycle.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "support.h"

namespace redlatch::bench {

namespace {

using Cycle = std::function<void()>;

struct alignas(64) Counter {
  std::atomic<long> value{0};
};

struct Rate {
  double cycles_per_s = 0;
  double cpu_us = 0;
  double switches = 0;
};

Rate rate_of(double cycles, Nanos elapsed, const Usage &used) {
  if (cycles <= 0) die("no cycle was finished");
  return {cycles * 1e9 / static_cast<double>(elapsed), used.cpu_us / cycles,
          used.switch_count / cycles};
}

// `make` is called in each thread, with its number.
Rate rate_of_threads(int thread_count, Nanos duration, const std::function<Cycle(int)> &make) {
  std::vector<Counter> counters(static_cast<size_t>(thread_count));
  std::atomic<int> ready_count{0};
  std::atomic<bool> is_over{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < thread_count; i++) {
    threads.emplace_back([&, i] {
      const Cycle cycle = make(i);
      cycle();
      ready_count++;
      while (ready_count < thread_count) sleep_for(kMs);
      auto &counter = counters[static_cast<size_t>(i)].value;
      while (!is_over.load(std::memory_order_relaxed)) {
        cycle();
        counter.fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  const auto sum = [&counters] {
    long total = 0;
    for (const Counter &counter : counters) total += counter.value;
    return static_cast<double>(total);
  };
  while (ready_count < thread_count) sleep_for(kMs);
  sleep_for(100 * kMs);
  const Usage before = Usage::so_far();
  const double cycles_before = sum();
  const Nanos start = now();
  sleep_for(duration);
  const double cycles = sum() - cycles_before;
  const Nanos elapsed = now() - start;
  const Usage used = Usage::so_far().since(before);
  is_over = true;
  for (std::thread &thread : threads) thread.join();
  return rate_of(cycles, elapsed, used);
}

Rate rate_of_pipeline(Raw &raw, const LockScripts &scripts, int width, Nanos duration) {
  std::vector<LockScripts::Cycle> cycles;
  for (int i = 0; i < width; i++) cycles.push_back(scripts.cycle_of("pipe-" + std::to_string(i)));
  const Usage before = Usage::so_far();
  const Nanos start = now();
  double count = 0;
  while (now() - start < duration) {
    for (const auto &cycle : cycles) raw.append(cycle.acquire);
    for (const auto &cycle : cycles) raw.append(cycle.release);
    for (int i = 0; i < width; i++) LockScripts::expect_acquired(*raw.receive());
    for (int i = 0; i < width; i++) LockScripts::expect_released(*raw.receive());
    count += width;
  }
  return rate_of(count, now() - start, Usage::so_far().since(before));
}

void add(Result &row, const std::string &name, const Rate &rate) {
  row.add(name + "_per_s", rate.cycles_per_s);
  row.add(name + "_cpu_us", rate.cpu_us);
  row.add(name + "_switches", rate.switches);
}

void measure(const Arguments &arguments) {
  const int port = arguments.count("port");
  const int threads = arguments.count("threads");
  const Nanos duration = arguments.duration("seconds");
  Raw raw(port);
  const LockScripts scripts(raw, arguments.text("scripts"));
  const PlainLock plain(raw);
  const std::string only = arguments.text("only");
  Result result;
  for (int round = 0; round < arguments.count("rounds"); round++) {
    const std::string stem = "parallel-" + std::to_string(round) + "-";
    Result row;
    const auto compare = [&](const std::string &name, const auto &rate) {
      if (only == "all" || only == name) add(row, name, rate());
    };
    const auto with_own_connections = [&](const auto &lock) {
      return rate_of_threads(threads, duration, [&](int i) -> Cycle {
        auto own = std::make_shared<Raw>(port);
        return [own, cycle = lock.cycle_of(stem + std::to_string(i)), &lock] {
          lock.run(*own, cycle);
        };
      });
    };
    compare("plain", [&] { return with_own_connections(plain); });
    compare("scripts", [&] { return with_own_connections(scripts); });
    const auto with_one_client = [&](const OptionsPtr &options, const std::string &names) {
      const ClientPtr client = open_client(port);
      return rate_of_threads(threads, duration, [&](int i) -> Cycle {
        return [&client, &options, name = names + std::to_string(i)] {
          release(acquire(client, name, options));
        };
      });
    };
    compare("library", [&] { return with_one_client(OptionsPtr(), stem); });
    compare("permit", [&] { return with_one_client(permit_of(10), stem + "permits-"); });
    compare("pipeline", [&] { return rate_of_pipeline(raw, scripts, threads, duration); });
    result.add_row(row);
  }
  result.print();
}

}  // namespace

}  // namespace redlatch::bench

int main(int argc, char **argv) {
  redlatch::bench::measure(redlatch::bench::Arguments(argc, argv));
  return 0;
}
