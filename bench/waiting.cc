// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Many requests of one client wait, and one thread waits for all of them by a queue.
//
//   port           the server
//   waiters        how many
//   own            0: for one lock; 1: each for a lock of its own
//   seconds        how long nothing changes
//
// Memory is what malloc has given out, its headers included, from before the client is opened. The
// locks are taken by others: each is there as a token of ours whose holder says nothing.
#include <poll.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "support.h"

namespace redlatch::bench {

namespace {

constexpr std::string_view kSilentToken = "bench000000000000000wA0123456789";
constexpr std::string_view kLongTime = "3600000";

double count_clients(Raw &raw) {
  const ReplyPtr info = raw.call(command({"INFO", "clients"}));
  const std::string_view text(info->str, info->len);
  const size_t at = text.find("connected_clients:");
  return at == std::string_view::npos ? 0 : std::atof(text.data() + at + 18);
}

std::string name_of(int i, bool is_own) {
  return is_own ? "waiting-" + std::to_string(i) : std::string("waiting");
}

void hold(Raw &raw, int count, bool is_own) {
  for (int i = 0; i < (is_own ? count : 1); i++) {
    raw.call(command({"SET", name_of(i, is_own), kSilentToken, "PX", kLongTime}));
  }
}

// Until the server was asked for nothing for a while: all are in their queues.
void await_silence(Raw &raw) {
  for (double before = -1, count = 0; before != count;) {
    before = count;
    sleep_for(kSecond / 2);
    count = ServerCounts::so_far(raw).scripts;
  }
}

// Each that is granted gives the lock back: the next one has its turn.
void serve_all(const QueuePtr &queue, std::vector<RequestPtr> &requests) {
  int served = 0;
  while (served < static_cast<int>(requests.size())) {
    pollfd ready{rl_queue_fd(queue.get()), POLLIN, 0};
    if (poll(&ready, 1, static_cast<int>(kWaitMs)) != 1) die("a waiter was not served");
    while (const int64_t tag = rl_queue_next(queue.get(), 0)) {
      const RequestPtr request = std::move(requests[static_cast<size_t>(tag - 1)]);
      const LeasePtr lease(rl_request_take_lease(request.get()));
      if (!lease) die(rl_request_message(request.get()));
      served++;
    }
  }
}

void measure(const Arguments &arguments) {
  use_one_arena();
  const int count = arguments.count("waiters");
  const bool is_own = arguments.count("own") == 1;
  Raw raw(arguments.count("port"));
  hold(raw, count, is_own);
  std::vector<RequestPtr> requests;
  requests.reserve(static_cast<size_t>(count));
  const double clients_before = count_clients(raw);
  const double threads_before = count_threads();
  const double bytes_before = bytes_in_use();

  const ClientPtr client = open_client(arguments.count("port"));
  const QueuePtr queue(rl_queue_new(nullptr));
  const Nanos start = now();
  for (int i = 0; i < count; i++) {
    const std::string name = name_of(i, is_own);
    requests.emplace_back(rl_acquire_start(client.get(), name.data(), name.size(), -1, nullptr));
    if (rl_request_watch(requests.back().get(), queue.get(), i + 1) != RL_OK) die("no memory");
  }
  const double start_us = static_cast<double>(now() - start) / kUs;
  await_silence(raw);

  Result result;
  result.add("bytes_per_waiter", (bytes_in_use() - bytes_before) / count);
  result.add("threads", count_threads());
  result.add("library_threads", count_threads() - threads_before);
  result.add("connections", count_clients(raw) - clients_before);
  result.add("start_us", start_us / count);
  const double scripts_before = ServerCounts::so_far(raw).scripts;
  const Usage used_before = Usage::so_far();
  sleep_for(arguments.duration("seconds"));
  const double commands = ServerCounts::so_far(raw).scripts - scripts_before;
  const double per_15_s = 15 / arguments.number("seconds");
  result.add("commands_per_name", commands * per_15_s / (is_own ? count : 1));
  result.add("cpu_ms_per_s",
             Usage::so_far().since(used_before).cpu_us / 1e3 / arguments.number("seconds"));
  if (!is_own) {
    const Nanos freed_at = now();
    const std::string name = name_of(0, is_own);
    if (rl_force_release_any(client.get(), name.data(), name.size(), nullptr) != RL_OK) {
      die("cannot take the lock away");
    }
    serve_all(queue, requests);
    result.add("served_us", static_cast<double>(now() - freed_at) / kUs / count);
  }
  result.print();
}

}  // namespace

}  // namespace redlatch::bench

int main(int argc, char **argv) {
  redlatch::bench::measure(redlatch::bench::Arguments(argc, argv));
  return 0;
}
