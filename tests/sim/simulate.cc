// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// simulate: runs seeds, or tells the story of one. docs/testing.md says how it is used.
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "campaign.h"

namespace redlatch::sim {

namespace {

constexpr const char kUsage[] =
    "usage: simulate [--from SEED] [--seeds COUNT | --minutes N] [--simulated MINUTES] [--jobs N]\n"
    "       simulate --seed N [--simulated MINUTES] [--trace | --shrink]\n"
    "both:  [--shape general|drift|claim] [--without FAULT,..] [--commit TEXT]\n";

struct Arguments {
  Orders orders;
  bool is_single = false, is_told = false, is_shrunk = false;
  std::string commit = "unknown";
};

bool read_faults(std::string_view text, std::vector<Fault> &faults) {
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const size_t number = fault_number(text.substr(0, comma));
    if (number == kFaultCount) {
      fprintf(stderr, "simulate: there is no fault '%.*s'\n", static_cast<int>(comma), text.data());
      return false;
    }
    faults.push_back(static_cast<Fault>(number));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return true;
}

bool read_shape(std::string_view text, Orders &orders) {
  for (size_t i = 0; i < static_cast<size_t>(Shape::kCount); i++) {
    if (name_of(static_cast<Shape>(i)) == text) orders.shape = static_cast<Shape>(i);
  }
  if (!orders.shape) fprintf(stderr, "simulate: there is no shape '%s'\n", text.data());
  return orders.shape.has_value();
}

bool read_number(const char *text, uint64_t least, uint64_t &number) {
  char *end = nullptr;
  number = strtoull(text, &end, 10);
  if (*text >= '0' && *text <= '9' && *end == '\0' && number >= least) return true;
  fprintf(stderr, "simulate: '%s' is no number from %" PRIu64 " on\n", text, least);
  return false;
}

bool read_value(std::string_view option, const char *value, Arguments &arguments) {
  Orders &orders = arguments.orders;
  uint64_t number = 0;
  if (option == "--without") return read_faults(value, orders.without);
  if (option == "--shape") return read_shape(value, orders);
  if (option == "--commit") {
    arguments.commit = value;
    return true;
  }
  const bool is_simulated = option == "--simulated";
  // The calm at the end takes most of the first minute.
  if (!read_number(value, is_simulated ? 2 : 1, number)) return false;
  if (option == "--seed" || option == "--from") orders.first_seed = number;
  if (option == "--seed") arguments.is_single = true;
  if (option == "--seeds") orders.seed_count = number;
  if (option == "--minutes") orders.wall_minutes = static_cast<int>(number);
  if (option == "--jobs") orders.jobs = static_cast<int>(number);
  if (is_simulated) orders.duration = static_cast<Nanos>(number) * 60'000 * kMs;
  return true;
}

bool read(int count, char **words, Arguments &arguments) {
  for (int i = 1; i < count; i++) {
    const std::string_view option = words[i];
    if (option == "--trace") {
      arguments.is_told = true;
    } else if (option == "--shrink") {
      arguments.is_shrunk = true;
    } else if (option != "--seed" && option != "--from" && option != "--seeds" &&
               option != "--minutes" && option != "--jobs" && option != "--simulated" &&
               option != "--without" && option != "--shape" && option != "--commit") {
      fprintf(stderr, "simulate: unknown option '%s'\n%s", words[i], kUsage);
      return false;
    } else if (++i == count) {
      fprintf(stderr, "simulate: %s needs a value\n", words[i - 1]);
      return false;
    } else if (!read_value(option, words[i], arguments)) {
      return false;
    }
  }
  return true;
}

std::string listed(const std::vector<Fault> &faults) {
  std::string text;
  for (const Fault fault : faults) text.append(text.empty() ? "" : ",").append(name_of(fault));
  return text;
}

int run_one(const Arguments &arguments) {
  const Orders &orders = arguments.orders;
  const uint64_t seed = orders.first_seed;
  const Plan plan = plan_of(seed, orders);
  const Result result = run_seed(seed, orders, arguments.is_told ? stdout : nullptr);
  printf("seed %" PRIu64 ", commit %s: %s\nhash %016" PRIx64 ", %" PRIu64 " grants\n", seed,
         arguments.commit.c_str(), plan.describe().c_str(), result.hash, result.tally.grants);
  if (!result.is_broken) {
    const std::string missing = result.what_is_missing(plan);
    printf("no violation%s%s\n", missing.empty() ? "" : "; it does not count: ", missing.c_str());
    return 0;
  }
  printf("violation at %.6f s: %s: %s\n", static_cast<double>(result.at) / 1e9, result.rule.c_str(),
         result.how.c_str());
  if (arguments.is_shrunk) {
    const auto without = shrink(seed, orders, result.rule);
    printf("needed: %s\n",
           [&] {
             Orders less = orders;
             less.without = without;
             return plan_of(seed, less).describe();
           }()
               .c_str());
    printf("replay: simulate --seed %" PRIu64 " --simulated %lld --trace --without %s\n", seed,
           static_cast<long long>(orders.duration / (60'000 * kMs)), listed(without).c_str());
  }
  return 1;
}

int run_many(const Arguments &arguments) {
  const Findings findings = run_all(arguments.orders);
  printf("commit %s, seeds from %" PRIu64 "\n%s", arguments.commit.c_str(),
         arguments.orders.first_seed, findings.summary(arguments.orders).c_str());
  for (const auto &broken : findings.broken) {
    printf("violation, seed %" PRIu64 ", commit %s: %s\n", broken.seed, arguments.commit.c_str(),
           broken.text.c_str());
  }
  return findings.broken.empty() ? 0 : 1;
}

}  // namespace

}  // namespace redlatch::sim

int main(int argc, char **argv) {
  redlatch::sim::Arguments arguments;
  arguments.orders.duration = 10 * 60'000 * redlatch::kMs;
  if (!read(argc, argv, arguments)) return 2;
  return arguments.is_single ? run_one(arguments) : run_many(arguments);
}
