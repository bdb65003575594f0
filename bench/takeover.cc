// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The process that holds a lock is killed: how long after the end of its lease does the next waiter
// have it.
//
//   port               the server
//   runs               how often
//   ttl_ms waiters   of the holder; threads in one other process
//
// The end of the lease is what PTTL says after the kill. It counts whole milliseconds, so a result
// may be up to one below 0.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "support.h"

namespace redlatch::bench {

namespace {

struct Shared {
  std::atomic<bool> is_held{false};
  std::atomic<Nanos> taken_over_at{0};
};

void hold_until_killed(Shared &shared, const Arguments &arguments, const std::string &name) {
  const ClientPtr client = open_client(arguments.count("port"));
  const OptionsPtr options = make_options(arguments.count("ttl_ms"), 0);
  const LeasePtr lease = acquire(client, name, options);
  shared.is_held = true;
  for (;;) pause();
}

void wait_in_line(Shared &shared, const Arguments &arguments, const std::string &name) {
  const ClientPtr client = open_client(arguments.count("port"));
  const OptionsPtr options = make_options(arguments.count("ttl_ms"), 0);
  std::vector<std::thread> threads;
  for (int i = 0; i < arguments.count("waiters"); i++) {
    threads.emplace_back([&] {
      LeasePtr lease = acquire(client, name, options);
      Nanos nobody = 0;
      shared.taken_over_at.compare_exchange_strong(nobody, now());
      release(std::move(lease));
    });
  }
  for (std::thread &thread : threads) thread.join();
}

// In ms.
double run_once(Raw &raw, const Arguments &arguments, int run) {
  const std::string name = "takeover-" + std::to_string(run);
  auto &shared = make_shared_memory<Shared>();
  const int holder = spawn([&] { hold_until_killed(shared, arguments, name); });
  while (!shared.is_held) sleep_for(kMs);
  const int waiter = spawn([&] { wait_in_line(shared, arguments, name); });
  const std::string count = command({"ZCARD", "{" + name + "}:rl1:q"});
  while (raw.call(count)->integer != arguments.count("waiters")) sleep_for(kMs);
  // At another moment between two renewals each time.
  const Nanos lease = arguments.count("ttl_ms") * kMs;
  sleep_for(lease / 3 + lease * (run % 7) / 20);
  kill(holder, SIGKILL);
  waitpid(holder, nullptr, 0);
  sleep_for(5 * kMs);  // What it had sent has arrived.
  const Nanos asked_at = now();
  const long long left_ms = raw.call(command({"PTTL", name}))->integer;
  if (left_ms <= 0) die("the lease had ended before anybody looked");
  reap(waiter);
  return static_cast<double>(shared.taken_over_at - asked_at) / kMs - static_cast<double>(left_ms);
}

void measure(const Arguments &arguments) {
  Raw raw(arguments.count("port"));
  Result result;
  for (int run = 0; run < arguments.count("runs"); run++) {
    result.add_row(Result().add("beyond_ms", run_once(raw, arguments, run)));
  }
  result.print();
}

}  // namespace

}  // namespace redlatch::bench

int main(int argc, char **argv) {
  redlatch::bench::measure(redlatch::bench::Arguments(argc, argv));
  return 0;
}
