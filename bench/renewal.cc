// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Many leases held at the same time: what keeping them alive costs.
//
//   port               the server
//   leases ttl_ms    how many, how long each
//   settle seconds     before and while it is measured
#include <string>
#include <vector>

#include "support.h"

namespace redlatch::bench {

namespace {

std::vector<LeasePtr> take(const ClientPtr &client, int count, const OptionsPtr &options) {
  constexpr int kAtOnce = 500;
  std::vector<LeasePtr> leases;
  while (static_cast<int>(leases.size()) < count) {
    std::vector<RequestPtr> requests;
    for (int i = 0; i < kAtOnce && static_cast<int>(leases.size()) + i < count; i++) {
      const std::string name = "renewal-" + std::to_string(leases.size() + requests.size());
      requests.emplace_back(
          rl_acquire_start(client.get(), name.data(), name.size(), kWaitMs, options.get()));
    }
    for (const RequestPtr &request : requests) {
      if (rl_request_wait(request.get(), -1) != RL_OK) die(rl_request_message(request.get()));
      leases.emplace_back(rl_request_take_lease(request.get()));
    }
  }
  return leases;
}

void measure(const Arguments &arguments) {
  const int port = arguments.count("port");
  const int count = arguments.count("leases");
  const int64_t ttl_ms = arguments.count("ttl_ms");
  Raw raw(port);
  const double threads_before = count_threads();
  const ClientPtr client = open_client(port);
  const OptionsPtr options = make_options(ttl_ms, 0);
  const std::vector<LeasePtr> leases = take(client, count, options);
  sleep_for(arguments.duration("settle"));

  const ServerCounts counts_before = ServerCounts::so_far(raw);
  const Usage before = Usage::so_far();
  const Nanos start = now();
  sleep_for(arguments.duration("seconds"));
  const auto elapsed_us = static_cast<double>(now() - start) / kUs;
  const Usage used = Usage::so_far().since(before);
  const double renewals = ServerCounts::so_far(raw).scripts - counts_before.scripts;
  for (const LeasePtr &lease : leases) {
    if (rl_lease_state(lease.get()) != RL_LEASE_HELD) die("a lease was lost");
  }
  Result result;
  result.add("cpu_share", used.cpu_us / elapsed_us);
  result.add("renewals_per_s", renewals * 1e6 / elapsed_us);
  result.add("cpu_us_per_renewal", renewals > 0 ? used.cpu_us / renewals : 0);
  result.add("switches_per_s", used.switch_count * 1e6 / elapsed_us);
  result.add("library_threads", count_threads() - threads_before);
  result.print();
}

}  // namespace

}  // namespace redlatch::bench

int main(int argc, char **argv) {
  redlatch::bench::measure(redlatch::bench::Arguments(argc, argv));
  return 0;
}
