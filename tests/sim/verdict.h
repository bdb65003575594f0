// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Verdict: the first rule that a run broke.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "schedule.h"
#include "trace.h"

namespace redlatch::sim {

class Verdict {
 public:
  Verdict(const Schedule &schedule, Trace &trace) : schedule_(schedule), trace_(trace) {}

  // `rule`: the rule that was broken, a fixed text; `how`: the details.
  void broken(std::string_view rule, const std::string &how) {
    if (is_broken()) return;
    rule_ = rule;
    how_ = how;
    at_ = schedule_.now();
    trace_.say(at_, "VIOLATION: %s: %s", rule_.c_str(), how.c_str());
  }
  bool is_broken() const { return !rule_.empty(); }
  const std::string &rule() const { return rule_; }
  const std::string &how() const { return how_; }
  Nanos at() const { return at_; }

 private:
  const Schedule &schedule_;
  Trace &trace_;
  std::string rule_, how_;
  Nanos at_ = 0;
};

}  // namespace redlatch::sim
