// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Readers and writers of one lock.
//
//   port      the server
//   case      mix: threads that read and sometimes write, each with the lock for hold_us;
//             crowd: readers that wait for one writer, who releases once;
//             writer: one thread that writes now and then, beside threads that read all the time
//   threads   mix, writer: how many; of `mix`, all of one client
//   readers   crowd: how many
//   writes    mix: of 100 acquisitions; 100 is a mutex
//   hold_us   mix, writer: how long each has the lock
//   seconds   mix, writer
#include <poll.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "support.h"

namespace redlatch::bench {

namespace {

constexpr std::string_view kName = "readers";

LeasePtr acquire_for(const ClientPtr &client, bool is_read, const OptionsPtr &options) {
  const auto function = is_read ? rl_rw_acquire_read : rl_rw_acquire_write;
  LeasePtr lease(
      function(client.get(), kName.data(), kName.size(), kWaitMs, options.get(), nullptr));
  if (!lease) die("not acquired");
  return lease;
}

void hold_for(Nanos duration) {
  if (duration > 0) sleep_for(duration);
}

Result mix(const Arguments &arguments) {
  const ClientPtr client = open_client(arguments.count("port"));
  const int writes = arguments.count("writes");
  const Nanos hold = arguments.count("hold_us") * kUs;
  const Nanos end = now() + arguments.duration("seconds");
  std::atomic<int64_t> done{0};
  std::vector<std::thread> threads;
  const Nanos start = now();
  for (int t = 0; t < arguments.count("threads"); t++) {
    threads.emplace_back([&, t] {
      int64_t mine = 0;
      // Every so many; threads do not write at the same time.
      for (int round = t * 37; now() < end; round++, mine++) {
        LeasePtr lease = acquire_for(client, round * 61 % 100 >= writes, {});
        hold_for(hold);
        release(std::move(lease));
      }
      done += mine;
    });
  }
  for (auto &thread : threads) thread.join();
  Result result;
  result.add("per_s", static_cast<double>(done) * kSecond / static_cast<double>(now() - start));
  return result;
}

Result crowd(const Arguments &arguments) {
  const int count = arguments.count("readers");
  Raw raw(arguments.count("port"));
  const ClientPtr writer = open_client(arguments.count("port"));
  const ClientPtr client = open_client(arguments.count("port"));
  const QueuePtr queue(rl_queue_new(nullptr));
  LeasePtr written = acquire_for(writer, false, {});
  std::vector<RequestPtr> requests;
  std::vector<LeasePtr> leases;
  for (int i = 0; i < count; i++) {
    requests.emplace_back(
        rl_rw_acquire_read_start(client.get(), kName.data(), kName.size(), -1, nullptr));
    if (rl_request_watch(requests.back().get(), queue.get(), i + 1) != RL_OK) die("no memory");
  }
  for (double before = -1, seen = 0; before != seen;) {  // until all stand in the queue
    before = seen;
    sleep_for(kSecond / 10);
    seen = ServerCounts::so_far(raw).scripts;
  }
  const double scripts_before = ServerCounts::so_far(raw).scripts;
  const Nanos released_at = now();
  release(std::move(written));
  Samples samples;
  while (samples.size() < static_cast<size_t>(count)) {
    pollfd ready{rl_queue_fd(queue.get()), POLLIN, 0};
    if (poll(&ready, 1, static_cast<int>(kWaitMs)) != 1) die("a reader was not served");
    while (const int64_t tag = rl_queue_next(queue.get(), 0)) {
      leases.emplace_back(rl_request_take_lease(requests[static_cast<size_t>(tag - 1)].get()));
      if (!leases.back()) die("a reader has no lease");
      samples.add(now() - released_at);
    }
  }
  Result result;
  // The first extensions, each in its own time, are not of the hand-over.
  result.add("scripts", ServerCounts::so_far(raw).scripts - scripts_before);
  result.add("first_us", samples.us(0)).add("p50_us", samples.us(0.5));
  result.add("last_us", samples.us(1));
  result.add("ping_us", ping_us(arguments.count("port"), 200, 0));
  return result;
}

Result writer(const Arguments &arguments) {
  const ClientPtr readers = open_client(arguments.count("port"));
  const ClientPtr client = open_client(arguments.count("port"));
  const Nanos hold = arguments.count("hold_us") * kUs;
  std::atomic<bool> is_over{false};
  std::atomic<int64_t> read_count{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < arguments.count("threads"); t++) {
    threads.emplace_back([&] {
      while (!is_over) {
        LeasePtr lease = acquire_for(readers, true, {});
        hold_for(hold);
        release(std::move(lease));
        read_count++;
      }
    });
  }
  Samples samples;
  const Nanos end = now() + arguments.duration("seconds");
  while (now() < end) {
    sleep_for(5 * hold);
    const Nanos asked_at = now();
    LeasePtr lease = acquire_for(client, false, {});
    samples.add(now() - asked_at);
    release(std::move(lease));
  }
  is_over = true;
  for (auto &thread : threads) thread.join();
  Result result;
  result.add("p50_us", samples.us(0.5)).add("p99_us", samples.us(0.99));
  result.add("hold_us", static_cast<double>(hold) / kUs);
  result.add("reads_per_s", static_cast<double>(read_count) / arguments.number("seconds"));
  return result;
}

}  // namespace

}  // namespace redlatch::bench

int main(int argc, char **argv) {
  using namespace redlatch::bench;
  const Arguments arguments(argc, argv);
  const std::string what = arguments.text("case");
  const Result result = what == "mix"     ? mix(arguments)
                        : what == "crowd" ? crowd(arguments)
                                          : writer(arguments);
  result.print();
}
