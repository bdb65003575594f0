// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// SentinelSurvey: asks all sentinels how they are, for at most connect_timeout.
#pragma once

#include <vector>

#include "base/clock.h"
#include "base/finding.h"
#include "base/reply.h"
#include "base/settings.h"
#include "base/status.h"
#include "driver/dialogue.h"
#include "sentinel/survey.h"

namespace redlatch::driver {

class SentinelSurvey final : public Dialogue {
 public:
  // `settings` outlive it. `others`: sentinels beside those of the URL.
  SentinelSurvey(const Settings &settings, const std::vector<HostPort> &others, Nanos now)
      : survey_(settings, others, now, after(now, settings.connect_timeout)) {}

  bool is_over() const override { return survey_.is_over(); }
  const Outcome &outcome() const override { return outcome_; }
  Wire wire() const override { return kSentinel; }
  bool is_dialling() const override { return !is_over() && survey_.awaited_count() == 0; }
  const Settings &target() const override { return survey_.sentinel(); }
  size_t awaited_count() const override { return survey_.awaited_count(); }
  Nanos limit() const override { return survey_.limit(); }
  bool uses(Wire) const override { return survey_.awaited_count() > 0; }
  const char *check() const override { return nullptr; }

  void on_dialled(const Send &send, Nanos) override { survey_.on_dialled(send); }
  void on_failed(const Outcome &why, Nanos now) override { survey_.on_failed(why, now); }

  // When it is over.
  std::vector<Finding> findings() const { return survey_.findings(); }

 private:
  void take(const Reply &reply, const Send &, Nanos now) override { survey_.on_reply(reply, now); }

  sentinel::Survey survey_;
  const Outcome outcome_;  // that a sentinel does not answer is no failure
};

}  // namespace redlatch::driver
