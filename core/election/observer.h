// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Observer: a caller that waits until an election has another leader than the one that it knows.
//
//   kTracking --answered--> kReading --news--> finished
//       ^                      | none
//       |                      v
//       +---a change, time-- kResting
//
// The server is asked to report the next change of the lock's key, and then for the leader: a
// change between the two is reported, too. The key changes with each grant, release and renewal. It
// is not reported on time when a lease ends, so the observer reads again then. Where the server
// reports nothing it polls each second, and asks for no report until it has connected again. An
// outage is waited for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/status.h"
#include "compound/compound.h"
#include "lock/request.h"
#include "lock/service.h"
#include "operate/operation.h"

namespace redlatch::election {

using compound::Inner;

class Observer final : public compound::Compound {
 public:
  // All outlive it. `count`: of the observers.
  Observer(const Inner &inner, compound::Table &table, size_t &count,
           const std::shared_ptr<lock::Request> &request, Nanos now);
  ~Observer() override;

  void start(Nanos now) noexcept;
  void review(Nanos now) override;
  void on_no_memory(Nanos now) noexcept override;
  void fail(Status status, std::string_view message, Nanos now) noexcept override;
  void shut_down(Nanos now) noexcept override;
  void on_key_changed(std::optional<std::string_view> key) noexcept override;

 private:
  enum class Phase : uint8_t { kTracking, kReading, kResting };

  operate::Leader &task() const { return request_->as<operate::Leader>(); }
  void ask(Phase phase, Nanos now);
  void take_answer(Nanos now);
  void fail_late(Nanos now) noexcept;
  void rest(Nanos until) noexcept;
  void drop_part(Nanos now) noexcept;

  const Inner &inner_;
  size_t &count_;
  const Nanos wait_until_;
  Phase phase_ = Phase::kResting;
  Nanos due_ = 0;                                // while it rests
  std::shared_ptr<compound::PartRequest> part_;  // while it does not rest
  std::string key_;                              // of the lock; empty: not known yet
  bool may_track_ = true;                        // the server may report changes
  bool is_tracked_ = false;
  bool is_changed_ = false;  // since the last read began
  bool has_read_ = false;
};

}  // namespace redlatch::election
