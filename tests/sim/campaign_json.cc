// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Findings: as JSON, with rows as scripts/bench writes them, for bench/history.py.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <ctime>

#include "campaign.h"

namespace redlatch::sim {

namespace {

std::string quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    char escape[8];
    if (c == '"' || c == '\\') {
      quoted.append(1, '\\').append(1, c);
    } else if (static_cast<unsigned char>(c) < ' ') {
      snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      quoted.append(escape);
    } else {
      quoted.append(1, c);
    }
  }
  return quoted.append(1, '"');
}

std::string date_now() {
  const time_t now = time(nullptr);
  tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S+00:00", &parts);
  return text;
}

std::string case_of(const Orders &orders) {
  if (orders.scenario) return std::string(name_of(*orders.scenario));
  return orders.is_redlock    ? "quorums"
         : orders.is_sentinel ? "sentinels"
         : orders.is_cluster  ? "clusters"
                              : "one server and quorums";
}

// Rows of one case.
class Rows {
 public:
  explicit Rows(const Orders &orders) : case_(quoted(case_of(orders))) {}

  void add(const char *metric, double value, const char *unit = "") {
    char number[32];
    snprintf(number, sizeof number, "%.15g", value);
    text_ += text_.empty() ? "" : ",\n";
    text_ += "  {\"topic\": \"simulation\", \"case\": " + case_ + ", \"metric\": \"" + metric +
             "\", \"value\": " + number + ", \"rounds\": 1";
    if (*unit != '\0') text_ += std::string(", \"unit\": \"") + unit + "\"";
    text_ += "}";
  }
  void count(const char *metric, uint64_t value) { add(metric, static_cast<double>(value)); }

  const std::string &text() const { return text_; }

 private:
  std::string case_;
  std::string text_;
};

}  // namespace

std::string Findings::json(const Orders &orders, const std::string &commit,
                           const std::string &command) const {
  const double hours = static_cast<double>(simulated) / 3600e9;
  const double cpu = std::max(cpu_s, 1e-9);
  uint64_t all_hits = 0;
  std::string faults;
  for (size_t i = 0; i < kFaultCount; i++) {
    all_hits += stats.hits[i];
    faults += (i == 0 ? "" : ", ") + quoted(name_of(static_cast<Fault>(i))) + ": [" +
              std::to_string(stats.injected[i]) + ", " + std::to_string(stats.hits[i]) + "]";
  }
  std::string seeds;
  for (const Broken &one : broken) {
    seeds += (seeds.empty() ? "" : ", ") + std::to_string(one.seed);
  }
  Rows rows(orders);
  rows.count("seeds that count", counted);
  rows.count("seeds that did too little", uncounted);
  rows.add("simulated time", hours, "h");
  for (const auto &[name, value] : Stats::kCounts) rows.count(name, stats.*value);
  rows.count("faults that hit something", all_hits);
  rows.count("rules broken", broken.size());
  rows.add("real time", wall_s, "s");
  rows.add("speed of a core", hours * 3600 / cpu, "x");
  rows.add("events of a core", static_cast<double>(stats.events) / cpu, "1/s");
  return "{\n \"date\": " + quoted(date_now()) + ",\n \"commit\": " + quoted(commit) +
         ",\n \"command\": " + quoted(command) + ",\n \"broken_seeds\": [" + seeds +
         "],\n \"faults\": {" + faults + "},\n \"rows\": [\n" + rows.text() + "\n ]\n}\n";
}

}  // namespace redlatch::sim
