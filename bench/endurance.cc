// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Very many cycles: whether anything of the process grows.
//
//   port           the server
//   cycles         how many acquisitions and releases: by calls that wait and by a queue, in turn
//   names          over how many locks
//
// What the process has is looked at after the first tenth and at the end. Memory is what malloc has
// given out.
#include <string>
#include <vector>

#include "support.h"

namespace redlatch::bench {

namespace {

struct Belongings {
  double bytes, threads, descriptors;
  static Belongings now() { return {bytes_in_use(), count_threads(), count_descriptors()}; }
};

RequestPtr finish(const QueuePtr &queue, RequestPtr request, int64_t tag) {
  if (rl_request_watch(request.get(), queue.get(), tag) != RL_OK) die("no memory");
  if (rl_queue_next(queue.get(), kWaitMs) != tag) die("the wrong tag, or none");
  if (rl_request_status(request.get()) != RL_OK) die(rl_request_message(request.get()));
  return request;
}

void cycle(const ClientPtr &client, const QueuePtr &queue, const std::string &name,
           int64_t number) {
  if (number % 2 == 0) return release(acquire(client, name));
  RequestPtr request(rl_acquire_start(client.get(), name.data(), name.size(), kWaitMs, nullptr));
  request = finish(queue, std::move(request), number);
  const LeasePtr lease(rl_request_take_lease(request.get()));
  if (!lease) die("no lease");
  finish(queue, RequestPtr(rl_release_start(lease.get())), -number);
}

void measure(const Arguments &arguments) {
  use_one_arena();
  const int cycles = arguments.count("cycles");
  const int names = arguments.count("names");
  const ClientPtr client = open_client(arguments.count("port"));
  const QueuePtr queue(rl_queue_new(nullptr));
  Belongings early{};
  const Nanos start = now();
  for (int i = 1; i <= cycles; i++) {
    cycle(client, queue, "endurance-" + std::to_string(i % names), i);
    if (i == cycles / 10) early = Belongings::now();
  }
  const Belongings late = Belongings::now();
  Result result;
  result.add("bytes_grown", late.bytes - early.bytes);
  result.add("threads_grown", late.threads - early.threads);
  result.add("descriptors_grown", late.descriptors - early.descriptors);
  result.add("bytes", late.bytes);
  result.add("cycle_us", static_cast<double>(now() - start) / kUs / cycles);
  result.print();
}

}  // namespace

}  // namespace redlatch::bench

int main(int argc, char **argv) {
  redlatch::bench::measure(redlatch::bench::Arguments(argc, argv));
  return 0;
}
