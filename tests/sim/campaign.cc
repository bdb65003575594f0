// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "campaign.h"

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <ctime>
#include <map>

#include "workers.h"

namespace redlatch::sim {

namespace {

constexpr double kNanosPerHour = 3600e9;

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// The report of a worker process: lines `kind seed text`, and the stats at the end.
class Report {
 public:
  explicit Report(FILE *out) : out_(out) {}

  void broken(uint64_t seed, std::string text) {
    std::replace(text.begin(), text.end(), '\n', ' ');
    fprintf(out_, "broken %" PRIu64 " %s\n", seed, text.c_str());
    fflush(out_);
  }
  void missing(uint64_t seed, const std::string &what) {
    fprintf(out_, "missing %" PRIu64 " %s\n", seed, what.c_str());
  }
  void end(const Findings &findings) {
    fprintf(out_, "end 0\n");
    fwrite(&findings.counted, sizeof findings.counted, 1, out_);
    fwrite(&findings.simulated, sizeof findings.simulated, 1, out_);
    fwrite(&findings.cpu_s, sizeof findings.cpu_s, 1, out_);
    fwrite(&findings.stats, sizeof findings.stats, 1, out_);
  }

 private:
  FILE *out_;
};

// @return false if the process ended before its work did.
bool read_report(FILE *in, Findings &findings) {
  char *line = nullptr;
  size_t capacity = 0;
  bool is_complete = false;
  while (!is_complete && getline(&line, &capacity, in) > 0) {
    char kind[16];
    uint64_t seed = 0;
    int at = 0;
    if (sscanf(line, "%15s %" SCNu64 " %n", kind, &seed, &at) < 2) continue;
    std::string text(line + at);
    if (!text.empty() && text.back() == '\n') text.pop_back();
    const std::string_view word = kind;
    if (word == "broken") findings.broken.push_back({seed, text});
    if (word == "missing") {
      findings.uncounted++;
      findings.missing.push_back(text);
    }
    if (word != "end") continue;
    Findings part;
    is_complete = fread(&part.counted, sizeof part.counted, 1, in) == 1 &&
                  fread(&part.simulated, sizeof part.simulated, 1, in) == 1 &&
                  fread(&part.cpu_s, sizeof part.cpu_s, 1, in) == 1 &&
                  fread(&part.stats, sizeof part.stats, 1, in) == 1;
    findings.counted += part.counted;
    findings.simulated += part.simulated;
    findings.cpu_s += part.cpu_s;
    findings.stats.add(part.stats);
  }
  free(line);
  return is_complete;
}

std::string told(uint64_t seed, const Plan &plan, const Result &result) {
  char text[120];
  snprintf(text, sizeof text, " at %.6f s, hash %016" PRIx64 ", seed %" PRIu64,
           static_cast<double>(result.at) / 1e9, result.hash, seed);
  return result.rule + ": " + result.how + text + "; " + plan.describe();
}

// Some seeds take ten times as long as others.
void work(const Orders &orders, Begun &begun, FILE *out) {
  const auto begin = std::chrono::steady_clock::now();
  Report report(out);
  Findings mine;
  while (true) {
    const uint64_t i = begun++;
    const bool is_over = orders.wall_minutes > 0 ? seconds_since(begin) > orders.wall_minutes * 60
                                                 : i >= orders.seed_count;
    if (is_over) break;
    const uint64_t seed = orders.first_seed + i;
    const Plan plan = plan_of(seed, orders);
    const Result result = run_seed(seed, orders, nullptr);
    if (result.is_broken) {
      report.broken(seed, told(seed, plan, result));
      continue;
    }
    if (const auto missing = result.what_is_missing(plan); !missing.empty()) {
      report.missing(seed, missing);
      continue;
    }
    mine.counted++;
    mine.simulated += result.simulated;
    mine.stats.add(result.stats);
  }
  mine.cpu_s = static_cast<double>(clock()) / CLOCKS_PER_SEC;
  report.end(mine);
}

}  // namespace

Plan plan_of(uint64_t seed, const Orders &orders) {
  const Scenario usual = orders.is_redlock    ? Plan::redlock_scenario_of(seed)
                         : orders.is_sentinel ? Plan::sentinel_scenario_of(seed)
                         : orders.is_cluster  ? Plan::cluster_scenario_of(seed)
                                              : Plan::scenario_of(seed);
  Plan plan = Plan::of(seed, orders.duration, orders.scenario.value_or(usual));
  for (const Fault fault : orders.without) plan.do_without(fault);
  return plan;
}

Result run_seed(uint64_t seed, const Orders &orders, FILE *words) {
  return World(plan_of(seed, orders), orders.mutant, words).run();
}

Findings run_all(const Orders &orders) {
  const auto begin = std::chrono::steady_clock::now();
  Findings findings;
  const auto troubles = run_workers(
      orders.jobs, [&](Begun &begun, FILE *out) { work(orders, begun, out); },
      [&](FILE *in) { return read_report(in, findings); });
  for (const std::string &trouble : troubles) findings.broken.push_back({0, trouble});
  std::sort(findings.broken.begin(), findings.broken.end(),
            [](const auto &a, const auto &b) { return a.seed < b.seed; });
  findings.wall_s = seconds_since(begin);
  return findings;
}

std::vector<Fault> shrink(uint64_t seed, const Orders &orders, const std::string &rule) {
  Orders less = orders;
  for (size_t i = 0; i < kFaultCount; i++) {
    const auto fault = static_cast<Fault>(i);
    if (!plan_of(seed, less).has(fault)) continue;
    less.without.push_back(fault);
    const Result result = run_seed(seed, less, nullptr);
    if (!result.is_broken || result.rule != rule) less.without.pop_back();
  }
  return less.without;
}

std::string Findings::summary(const Orders &orders) const {
  std::string text;
  const auto say = [&text](const char *format, auto... values) {
    char line[256];
    snprintf(line, sizeof line, format, values...);
    text += line;
  };
  const double hours = static_cast<double>(simulated) / kNanosPerHour;
  say("%" PRIu64 " seeds of %lld minutes that count (%" PRIu64
      " more did too little), %.0f simulated hours, %zu violations\n",
      counted, static_cast<long long>(orders.duration / (60'000 * kMs)), uncounted, hours,
      broken.size());
  say("%" PRIu64 " grants (%.0f a minute; %" PRIu64 " after a wait in the server's queue), %" PRIu64
      " leases lost, %" PRIu64 " commands, %" PRIu64 " events\n",
      stats.grants, static_cast<double>(stats.grants) / std::max(hours * 60, 1e-9), stats.waits,
      stats.lost, stats.commands, stats.events);
  say("%" PRIu64 " handshakes, %" PRIu64 " of them struck by a fault\n", stats.openings,
      stats.struck);
  say("%.0f s on %d cores: %.0f times real time and %.0f events/s a core\n", wall_s, orders.jobs,
      hours * 3600 / std::max(cpu_s, 1e-9),
      static_cast<double>(stats.events) / std::max(cpu_s, 1e-9));
  if (stats.failovers > 0) {
    say("%" PRIu64 " failovers, which lost %" PRIu64 " grants\n", stats.failovers,
        stats.lost_grants);
  }
  if (stats.confirmed + stats.unconfirmed > 0) {
    say("%" PRIu64 " grants that replicas have confirmed, %" PRIu64 " that too few have\n",
        stats.confirmed, stats.unconfirmed);
  }
  text += "fault            injected        hit something\n";
  for (size_t i = 0; i < kFaultCount; i++) {
    say("%-15s %9" PRIu64 "  %9" PRIu64 "\n", name_of(static_cast<Fault>(i)).data(),
        stats.injected[i], stats.hits[i]);
  }
  std::map<std::string, int> reasons;
  for (const std::string &reason : missing) {
    reasons[reason.starts_with("only") ? "too few grants" : reason]++;
  }
  for (const auto &[reason, count] : reasons) {
    text += "not counted: " + std::to_string(count) + " x " + reason + "\n";
  }
  return text;
}

}  // namespace redlatch::sim
