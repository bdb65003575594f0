// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Many workers want one lock: how soon has the next one got it, at what cost, and is it fair.
//
//   port               the server
//   kind               lock, permit (one of `limit` of a semaphore), or blpop (the floor: a token
//                      in a list, a connection per worker)
//   limit              of the semaphore
//   workers processes  threads in total, and the processes that they are spread over
//   burst              max_local_handoffs of the acquisitions
//   hold               seconds of sleep in the critical section
//   warmup seconds     before and while it is measured
//   pings              after a pause as long as the hold, and ten times as many back to back
//
// The n-th grant of a semaphore belongs to the release `limit` before it: they are served in order.
//
// A hand-off's time runs from the start of the release call to the return of the next holder's
// acquire. `barged`: turns of somebody who asked after that release had begun, while another had
// long been waiting.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "support.h"

namespace redlatch::bench {

namespace {

constexpr long kMaxSamples = 1 << 19;
constexpr int kMaxWorkers = 1024;
constexpr int kMaxLimit = 64;
// Longer than any request is on its way: who has waited for this long stands in the queue.
constexpr Nanos kLong = 5 * kMs;
constexpr std::string_view kName = "handoff";

enum Stage : int { kGathering, kWarming, kMeasuring, kOver };

struct Shared {
  std::atomic<int> stage{kGathering};
  std::atomic<int> ready_count{0};
  std::atomic<long> grant_count{0};
  std::atomic<long> release_count{0};
  std::atomic<Nanos> releases[kMaxLimit] = {};  // of the last ones, by their number
  std::atomic<long> sample_count{0};
  std::atomic<long> barged_count{0};
  std::atomic<Nanos> longest_wait{0};
  std::atomic<long> turns[kMaxWorkers] = {};
  std::atomic<Nanos> asked_at[kMaxWorkers] = {};  // 0: it is not waiting
  Nanos samples[kMaxSamples] = {};
};

bool has_waited_long(const Shared &shared, int worker, Nanos until) {
  const Nanos asked_at = shared.asked_at[worker];
  return asked_at != 0 && until - asked_at > kLong;
}

void note_asked(Shared &shared, int worker) { shared.asked_at[worker] = now(); }

void note_release(Shared &shared, int limit) {
  shared.releases[shared.release_count++ % limit] = now();
}

// As many workers are here at a time as the limit allows.
void note_turn(Shared &shared, int worker, int limit) {
  const Nanos got_at = now();
  const Nanos asked_at = shared.asked_at[worker].exchange(0);
  const Nanos released_at = shared.releases[shared.grant_count++ % limit];
  if (shared.stage != kMeasuring) return;
  shared.turns[worker]++;
  if (asked_at < released_at) {
    const long index = shared.sample_count++;
    if (index < kMaxSamples) shared.samples[index] = got_at - released_at;
    if (got_at - asked_at > shared.longest_wait) shared.longest_wait = got_at - asked_at;
    return;
  }
  bool is_barged = false;
  for (int i = 0; i < kMaxWorkers; i++) {
    is_barged = is_barged || has_waited_long(shared, i, released_at);
  }
  if (is_barged) shared.barged_count++;
}

void gather(Shared &shared) {
  shared.ready_count++;
  while (shared.stage == kGathering) sleep_for(kMs);
}

void work_with_lock(Shared &shared, const ClientPtr &client, const Arguments &arguments,
                    int worker) {
  const int limit = arguments.count("limit", 1);
  const OptionsPtr options = arguments.text("kind") == "permit"
                                 ? permit_of(limit)
                                 : make_options(30'000, arguments.count("burst"));
  const Nanos hold = arguments.duration("hold");
  gather(shared);
  while (shared.stage != kOver) {
    note_asked(shared, worker);
    LeasePtr lease = acquire(client, kName, options);
    note_turn(shared, worker, limit);
    if (shared.stage != kOver) sleep_for(hold);
    note_release(shared, limit);
    release(std::move(lease));
  }
}

void work_with_token(Shared &shared, const Arguments &arguments, int worker) {
  Raw raw(arguments.count("port"));
  const Nanos hold = arguments.duration("hold");
  const std::string pop = command({"BLPOP", kName, "0"});
  const std::string push = command({"LPUSH", kName, "token"});
  gather(shared);
  while (shared.stage != kOver) {
    note_asked(shared, worker);
    raw.call(pop);
    note_turn(shared, worker, 1);
    if (shared.stage != kOver) sleep_for(hold);
    note_release(shared, 1);
    raw.call(push);
  }
}

void run_process(Shared &shared, const Arguments &arguments, int first, int count) {
  const bool is_floor = arguments.text("kind") == "blpop";
  const ClientPtr client = is_floor ? nullptr : open_client(arguments.count("port"));
  std::vector<std::thread> threads;
  for (int worker = first; worker < first + count; worker++) {
    threads.emplace_back([&, worker] {
      if (is_floor) return work_with_token(shared, arguments, worker);
      work_with_lock(shared, client, arguments, worker);
    });
  }
  for (std::thread &thread : threads) thread.join();
}

// Jain's index: 1 when all had the same number of turns.
void add_fairness(Result &result, const Shared &shared, int workers) {
  double sum = 0;
  double squares = 0;
  long fewest = shared.turns[0];
  for (int i = 0; i < workers; i++) {
    const auto turns = static_cast<double>(shared.turns[i]);
    sum += turns;
    squares += turns * turns;
    fewest = std::min(fewest, shared.turns[i].load());
  }
  result.add("turns", sum);
  result.add("jain", squares > 0 ? sum * sum / (workers * squares) : 0);
  result.add("fewest_turns", static_cast<double>(fewest));
}

void add_pings(Result &result, const Arguments &arguments, const std::string &suffix) {
  const int port = arguments.count("port");
  const int count = arguments.count("pings");
  result.add("ping_us_" + suffix, ping_us(port, 10 * count, 0));
  result.add("ping_after_pause_us_" + suffix, ping_us(port, count, arguments.duration("hold")));
}

void measure(const Arguments &arguments) {
  const int port = arguments.count("port");
  const int workers = arguments.count("workers");
  const int processes = arguments.count("processes");
  if (workers > kMaxWorkers || workers < 2) die("workers: 2 to 1024");
  const int limit = arguments.count("limit", 1);
  if (limit > kMaxLimit || limit < 1) die("limit: 1 to 64");
  auto &shared = make_shared_memory<Shared>();
  Result result;
  add_pings(result, arguments, "before");
  Raw raw(port);
  if (arguments.text("kind") == "blpop") raw.call(command({"LPUSH", kName, "token"}));
  std::vector<int> children;
  for (int i = 0, first = 0; i < processes; i++) {
    const int count = workers / processes + (i < workers % processes ? 1 : 0);
    children.push_back(spawn([&] { run_process(shared, arguments, first, count); }));
    first += count;
  }
  while (shared.ready_count < workers) sleep_for(kMs);
  shared.stage = kWarming;
  sleep_for(arguments.duration("warmup"));
  shared.stage = kMeasuring;
  const ServerCounts before = ServerCounts::so_far(raw);
  sleep_for(arguments.duration("seconds"));
  const ServerCounts after = ServerCounts::so_far(raw);
  shared.stage = kOver;
  for (const int child : children) reap(child);
  raw.call(command({"DEL", kName}));
  add_pings(result, arguments, "after");
  Samples samples;
  const long count = std::min(shared.sample_count.load(), kMaxSamples);
  for (long i = 0; i < count; i++) samples.add(shared.samples[i]);
  result.add("p50_us", samples.us(0.5)).add("p99_us", samples.us(0.99));
  result.add("handoffs", static_cast<double>(shared.sample_count));
  result.add("barged", static_cast<double>(shared.barged_count));
  result.add("longest_wait_us", static_cast<double>(shared.longest_wait) / kUs);
  result.add("scripts", after.scripts - before.scripts);
  result.add("enqueues", after.enqueues - before.enqueues);
  add_fairness(result, shared, workers);
  result.print();
}

}  // namespace

}  // namespace redlatch::bench

int main(int argc, char **argv) {
  redlatch::bench::measure(redlatch::bench::Arguments(argc, argv));
  return 0;
}
