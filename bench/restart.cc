// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The server goes away under waiters and comes back without its data.
//
//   port               the server
//   processes threads  waiters: so many processes with so many threads each
//   burst              max_local_handoffs
//
// Prints the line `waiting` when everybody stands in line behind a holder, and goes on by itself;
// run.py restarts the server then. Prints when (CLOCK_MONOTONIC) the first and the last waiter had
// their turn. Nobody's call may fail.
#include <atomic>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "support.h"

namespace redlatch::bench {

namespace {

constexpr std::string_view kName = "restart";

struct Shared {
  std::atomic<bool> is_held{false};
  std::atomic<int> asking_count{0};
  std::atomic<int> served_count{0};
  std::atomic<Nanos> first_at{0};
  std::atomic<Nanos> last_at{0};
};

// Until the restart takes the lock away.
void hold(Shared &shared, int port) {
  const ClientPtr client = open_client(port);
  const LeasePtr lease = acquire(client, kName);
  shared.is_held = true;
  if (rl_lease_wait_lost(lease.get(), kWaitMs) != RL_LEASE_LOST) die("the holder lost nothing");
}

void wait_in_line(Shared &shared, const Arguments &arguments) {
  const ClientPtr client = open_client(arguments.count("port"));
  const OptionsPtr options = make_options(30'000, arguments.count("burst"));
  std::vector<std::thread> threads;
  for (int i = 0; i < arguments.count("threads"); i++) {
    threads.emplace_back([&] {
      shared.asking_count++;
      LeasePtr lease = acquire(client, kName, options);
      Nanos nobody = 0;
      const Nanos got_at = now();
      shared.first_at.compare_exchange_strong(nobody, got_at);
      shared.last_at = got_at;
      shared.served_count++;
      release(std::move(lease));
    });
  }
  for (std::thread &thread : threads) thread.join();
}

void wait_until_queued(const Shared &shared, const Arguments &arguments) {
  const int processes = arguments.count("processes");
  const int waiters = processes * arguments.count("threads");
  // Callers that share a local queue share a place in the server's.
  const int places = arguments.count("burst") > 0 ? processes : waiters;
  Raw raw(arguments.count("port"));
  const std::string count = command({"ZCARD", std::string("{").append(kName).append("}:rl1:q")});
  while (shared.asking_count < waiters || raw.call(count)->integer != places) sleep_for(kMs);
  sleep_for(200 * kMs);
}

void measure(const Arguments &arguments) {
  auto &shared = make_shared_memory<Shared>();
  const int port = arguments.count("port");
  std::vector<int> children{spawn([&] { hold(shared, port); })};
  while (!shared.is_held) sleep_for(kMs);
  for (int i = 0; i < arguments.count("processes"); i++) {
    children.push_back(spawn([&] { wait_in_line(shared, arguments); }));
  }
  wait_until_queued(shared, arguments);
  std::printf("waiting\n");
  std::fflush(stdout);
  for (const int child : children) reap(child);
  Result result;
  result.add("served", shared.served_count);
  result.add("first_ns", static_cast<double>(shared.first_at));
  result.add("last_ns", static_cast<double>(shared.last_at));
  result.print();
}

}  // namespace

}  // namespace redlatch::bench

int main(int argc, char **argv) {
  redlatch::bench::measure(redlatch::bench::Arguments(argc, argv));
  return 0;
}
