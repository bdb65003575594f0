// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Threads of one process want one lock: what passing it on inside the process costs.
//
//   port           the server
//   threads        how many
//   burst          max_local_handoffs
//   hold           seconds of sleep in the critical section; 0: back to back
//   seconds        how long
//
// A pass inside the process is known by its fence: the server's own grants are 32 apart or more.
// The floor is a futex: the threads stand in a ring, each wakes the next one.
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "support.h"

namespace redlatch::bench {

namespace {

constexpr std::string_view kName = "local-pass";

struct Turns {
  Samples local;  // passed on inside the process
  Samples all;
};

// What is read and written only by the holder.
struct Baton {
  Nanos released_at = 0;
  int64_t fence = 0;
};

void take_turns(const ClientPtr &client, const Arguments &arguments, Baton &baton, Nanos until,
                Turns &turns) {
  const OptionsPtr options = make_options(30'000, arguments.count("burst"));
  const Nanos hold = arguments.duration("hold");
  turns.local.reserve(1 << 16);
  turns.all.reserve(1 << 16);
  Nanos got_at = 0;
  while (got_at < until) {
    const Nanos asked_at = now();
    LeasePtr lease = acquire(client, kName, options);
    got_at = now();
    const int64_t fence = rl_lease_fence(lease.get());
    if (baton.released_at > asked_at) {
      turns.all.add(got_at - baton.released_at);
      if (fence == baton.fence + 1) turns.local.add(got_at - baton.released_at);
    }
    if (got_at < until) sleep_for(hold);
    baton.fence = fence;
    baton.released_at = now();
    release(std::move(lease));
  }
}

// One word for each thread; 1: it is your turn.
struct Ring {
  explicit Ring(size_t size) : words(size) {}
  std::vector<std::atomic<uint32_t>> words;
  std::atomic<Nanos> released_at{0};

  void wait(size_t i) {
    while (words[i].exchange(0) == 0) {
      syscall(SYS_futex, &words[i], FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
    }
  }
  void wake(size_t i) {
    words[i] = 1;
    syscall(SYS_futex, &words[i], FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }
};

void go_round(Ring &ring, size_t me, Nanos hold, Nanos until, Samples &samples) {
  const size_t next = (me + 1) % ring.words.size();
  samples.reserve(1 << 16);
  for (Nanos got_at = 0; got_at < until;) {
    ring.wait(me);
    got_at = now();
    samples.add(got_at - ring.released_at);
    if (got_at < until) sleep_for(hold);
    ring.released_at = now();
    ring.wake(next);
  }
}

template <class Body>
void run_threads(size_t count, const Body &body) {
  std::vector<std::thread> threads;
  for (size_t i = 0; i < count; i++) threads.emplace_back([&body, i] { body(i); });
  for (std::thread &thread : threads) thread.join();
}

void measure(const Arguments &arguments) {
  const auto count = static_cast<size_t>(arguments.count("threads"));
  const Nanos duration = arguments.duration("seconds");
  const ClientPtr client = open_client(arguments.count("port"));
  Baton baton;
  std::vector<Turns> turns(count);
  const Nanos until = now() + duration;
  run_threads(count, [&](size_t i) { take_turns(client, arguments, baton, until, turns[i]); });

  Ring ring(count);
  std::vector<Samples> floors(count);
  const Nanos floor_until = now() + duration / 2;
  ring.released_at = now();
  ring.words[0] = 1;
  run_threads(count, [&](size_t i) {
    go_round(ring, i, arguments.duration("hold"), floor_until, floors[i]);
  });

  Turns total;
  Samples floor;
  for (const Turns &each : turns) {
    total.local.add_all(each.local);
    total.all.add_all(each.all);
  }
  for (const Samples &each : floors) floor.add_all(each);
  Result result;
  result.add("local_p50_us", total.local.us(0.5)).add("local_p99_us", total.local.us(0.99));
  result.add("all_p50_us", total.all.us(0.5)).add("all_p99_us", total.all.us(0.99));
  result.add("local_count", static_cast<double>(total.local.size()));
  result.add("all_count", static_cast<double>(total.all.size()));
  result.add("futex_p50_us", floor.us(0.5)).add("futex_p99_us", floor.us(0.99));
  result.print();
}

}  // namespace

}  // namespace redlatch::bench

int main(int argc, char **argv) {
  redlatch::bench::measure(redlatch::bench::Arguments(argc, argv));
  return 0;
}
