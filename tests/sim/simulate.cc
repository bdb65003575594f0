// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include "world.h"
using namespace redlatch;
using namespace redlatch::sim;
int main(int argc, char **argv) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  uint64_t from = argc > 1 ? strtoull(argv[1], nullptr, 10) : 1;
  uint64_t count = argc > 2 ? strtoull(argv[2], nullptr, 10) : 1;
  int minutes = argc > 3 ? atoi(argv[3]) : 10;
  bool trace = argc > 4 && !strcmp(argv[4], "trace");
  const Mutant *m = argc > 5 ? mutant_of(argv[5]) : nullptr;
  Tally all; int bad = 0, idle = 0; double t0 = 0;
  auto began = std::chrono::steady_clock::now();
  Nanos simulated = 0;
  for (uint64_t s = from; s < from + count; s++) {
    Plan plan = Plan::of(s, minutes * 60'000LL * kMs, Plan::shape_of(s));
    World world(plan, m, trace ? stdout : nullptr);
    Result r = world.run();
    all.add(r.tally); simulated += r.simulated;
    if (r.is_broken) { bad++; printf("seed %lu: %s: %s at %.6f hash %016lx\n  %s\n", s, r.rule.c_str(), r.how.c_str(), (double)r.at / 1e9, r.hash, plan.describe().c_str()); }
    else if (auto w = r.what_is_missing(plan); !w.empty()) { idle++; if (idle < 20) printf("seed %lu does not count: %s; %s\n", s, w.c_str(), plan.describe().c_str()); }
  }
  double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  printf("bad %d idle %d grants %lu waits %lu lost %lu commands %lu events %lu; %.1f s, %.0f x, %.0f ev/s\n", bad, idle, all.grants, all.waits, all.lost, all.commands, all.events, wall, (double)simulated / 1e9 / wall, (double)all.events / wall);
  for (size_t i = 0; i < kFaultCount; i++) printf("  %s %lu/%lu\n", name_of((Fault)i).data(), all.hits[i], all.injected[i]);
  (void)t0;
  return bad != 0;
}
