// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// simulate: runs many seeds, or prints the trace of one. docs/testing.md shows how to use it.
#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "campaign.h"

namespace redlatch::sim {

namespace {

constexpr const char kUsage[] =
    "usage: simulate [--from SEED] [--seeds COUNT | --minutes N] [--jobs N] [--json FILE]\n"
    "       simulate --seed N [--trace] [--shrink]\n"
    "both:  [--simulated MINUTES] [--scenario NAME | --redlock | --sentinel |\n"
    "       --cluster] [--without FAULT,..]\n"
    "       [--mutant NAME] [--commit TEXT]\n";

struct Arguments {
  Orders orders;
  bool is_single = false, is_told = false, is_shrunk = false;
  std::string commit = "unknown";
  std::string json;     // a file for the summary
  std::string command;  // the options that decide what is run
};

// An error of the command line.
struct Wrong {
  std::string what;
};

std::vector<Fault> faults_of(std::string_view text) {
  std::vector<Fault> faults;
  while (!text.empty()) {
    const std::string name(text.substr(0, text.find(',')));
    const size_t number = fault_number(name);
    if (number == kFaultCount) throw Wrong{"there is no fault '" + name + "'"};
    faults.push_back(static_cast<Fault>(number));
    text.remove_prefix(std::min(name.size() + 1, text.size()));
  }
  return faults;
}

Scenario scenario_of(const std::string &text) {
  for (size_t i = 0; i < static_cast<size_t>(Scenario::kCount); i++) {
    if (name_of(static_cast<Scenario>(i)) == text) return static_cast<Scenario>(i);
  }
  throw Wrong{"there is no scenario '" + text + "'"};
}

constexpr uint64_t kMost = 1'000'000;  // minutes
constexpr uint64_t kMostJobs = 1000;

uint64_t number_of(const std::string &text, uint64_t least, uint64_t most = UINT64_MAX) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && number >= least &&
      number <= most) {
    return number;
  }
  throw Wrong{"'" + text + "' is no number from " + std::to_string(least) +
              (most == UINT64_MAX ? " on" : " to " + std::to_string(most))};
}

void read_option(const std::string &option, const std::string &value, Arguments &arguments) {
  Orders &orders = arguments.orders;
  if (option == "--seed" || option == "--from") {
    orders.first_seed = number_of(value, 1);
    arguments.is_single = arguments.is_single || option == "--seed";
  } else if (option == "--seeds") {
    orders.seed_count = number_of(value, 1);
  } else if (option == "--minutes") {
    orders.wall_minutes = static_cast<int>(number_of(value, 1, kMost));
  } else if (option == "--jobs") {
    orders.jobs = static_cast<int>(number_of(value, 1, kMostJobs));
  } else if (option == "--simulated") {
    // The calm at the end takes most of the first minute.
    orders.duration = static_cast<Nanos>(number_of(value, 2, kMost)) * 60'000 * kMs;
  } else if (option == "--without") {
    orders.without = faults_of(value);
  } else if (option == "--scenario") {
    orders.scenario = scenario_of(value);
  } else if (option == "--mutant") {
    orders.mutant = mutant_of(value);
    if (orders.mutant == nullptr) throw Wrong{"there is no mutant '" + value + "'"};
  } else if (option == "--commit") {
    arguments.commit = value;
  } else if (option == "--json") {
    arguments.json = value;
  } else {
    throw Wrong{"there is no option '" + option + "'"};
  }
}

// The command line without what says nothing about the runs.
std::string command_of(const std::vector<std::string> &words) {
  std::string text;
  for (size_t i = 0; i < words.size(); i++) {
    if (words[i] == "--commit" || words[i] == "--json") {
      i++;
    } else {
      text.append(text.empty() ? "" : " ").append(words[i]);
    }
  }
  return text;
}

Arguments read(const std::vector<std::string> &words) {
  Arguments arguments;
  arguments.orders.duration = 10 * 60'000 * kMs;
  for (size_t i = 0; i < words.size(); i++) {
    if (words[i] == "--trace") {
      arguments.is_told = true;
    } else if (words[i] == "--redlock") {
      arguments.orders.is_redlock = true;
    } else if (words[i] == "--sentinel") {
      arguments.orders.is_sentinel = true;
    } else if (words[i] == "--cluster") {
      arguments.orders.is_cluster = true;
    } else if (words[i] == "--shrink") {
      arguments.is_shrunk = true;
    } else if (i + 1 == words.size()) {
      throw Wrong{words[i] + " needs a value, or is no option"};
    } else {
      read_option(words[i], words[i + 1], arguments);
      i++;
    }
  }
  if (arguments.is_single && !arguments.json.empty()) {
    throw Wrong{"--json is the summary of many seeds, not of --seed"};
  }
  arguments.command = command_of(words);
  return arguments;
}

std::string listed(const std::vector<Fault> &faults) {
  std::string text;
  for (const Fault fault : faults) text.append(text.empty() ? "" : ",").append(name_of(fault));
  return text;
}

void show_replay(uint64_t seed, const Orders &orders) {
  printf("replay: --seed %" PRIu64 " --simulated %lld", seed,
         static_cast<long long>(orders.duration / (60'000 * kMs)));
  if (!orders.without.empty()) printf(" --without %s", listed(orders.without).c_str());
  if (orders.scenario) printf(" --scenario %s", std::string(name_of(*orders.scenario)).c_str());
  if (orders.is_redlock) printf(" --redlock");
  if (orders.is_sentinel) printf(" --sentinel");
  if (orders.is_cluster) printf(" --cluster");
  if (orders.mutant != nullptr) printf(" --mutant %s", std::string(orders.mutant->name).c_str());
  printf("\n");
}

void show_shrunk(const Orders &orders, const std::string &rule) {
  Orders less = orders;
  less.without = shrink(orders.first_seed, orders, rule);
  printf("needed: %s\n", plan_of(orders.first_seed, less).describe().c_str());
  show_replay(orders.first_seed, less);
}

int run_one(const Arguments &arguments) {
  const Orders &orders = arguments.orders;
  const uint64_t seed = orders.first_seed;
  const Plan plan = plan_of(seed, orders);
  const Result result = run_seed(seed, orders, arguments.is_told ? stdout : nullptr);
  printf("seed %" PRIu64 ", commit %s: %s\nhash %016" PRIx64 ", %" PRIu64 " grants\n", seed,
         arguments.commit.c_str(), plan.describe().c_str(), result.hash, result.stats.grants);
  if (!result.is_broken) {
    const std::string missing = result.what_is_missing(plan);
    printf("no violation%s%s\n", missing.empty() ? "" : "; it does not count: ", missing.c_str());
    return 0;
  }
  printf("violation at %.6f s: %s: %s\n", static_cast<double>(result.at) / 1e9, result.rule.c_str(),
         result.how.c_str());
  if (arguments.is_shrunk) show_shrunk(orders, result.rule);
  return 1;
}

int run_many(const Arguments &arguments) {
  // Opened before the runs, which may take hours.
  const std::unique_ptr<FILE, int (*)(FILE *)> json(
      arguments.json.empty() ? nullptr : fopen(arguments.json.c_str(), "w"), fclose);
  if (!arguments.json.empty() && !json) throw Wrong{"cannot write '" + arguments.json + "'"};
  const Findings findings = run_all(arguments.orders);
  printf("commit %s, seeds from %" PRIu64 "\n%s", arguments.commit.c_str(),
         arguments.orders.first_seed, findings.summary(arguments.orders).c_str());
  for (const auto &broken : findings.broken) {
    printf("violation, seed %" PRIu64 ", commit %s: %s\n", broken.seed, arguments.commit.c_str(),
           broken.text.c_str());
    show_replay(broken.seed, arguments.orders);
  }
  if (json) {
    fputs(findings.json(arguments.orders, arguments.commit, arguments.command).c_str(), json.get());
  }
  return findings.broken.empty() ? 0 : 1;
}

}  // namespace

}  // namespace redlatch::sim

int main(int argc, char **argv) {
  using namespace redlatch::sim;
  try {
    const auto arguments = read({argv + 1, argv + argc});
    return arguments.is_single ? run_one(arguments) : run_many(arguments);
  } catch (const Wrong &wrong) {
    fprintf(stderr, "simulate: %s\n%s", wrong.what.c_str(), kUsage);
    return 2;
  }
}
