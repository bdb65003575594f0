// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Composite: one acquire of several names, from the call to its grant, and the lease that it is
// then.
//
//   kTrying --all are free--> held --release, loss of a part--> forgotten
//      |                       ^
//      v one is not            |
//   kOrdered ------------------+
//
// First all names are asked for at once: one round trip if all are free. The first one may wait,
// the others are tried. If one is not free, they are acquired one after the other, in the order of
// their bytes, which is that of their keys. Every caller waits in this order and holds no name
// behind the awaited one, so waits cannot form a circle (resource ordering, Havender 1968). The
// parts before the awaited one are held, and renewed by their lock client. If one of them is lost
// meanwhile, all behind it are given back, and it is acquired next.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "compound/compound.h"
#include "lock/request.h"
#include "lock/service.h"

namespace redlatch::composite {

using compound::Inner;

class Composite final : public compound::Compound {
 public:
  // `inner` and `table` outlive it.
  Composite(const Inner &inner, compound::Table &table,
            const std::shared_ptr<lock::Request> &request, Nanos now);
  ~Composite() override;

  void start(Nanos now) noexcept;
  void review(Nanos now) override;
  void on_no_memory(Nanos now) noexcept override;
  void fail(Status status, std::string_view message, Nanos now) noexcept override;
  void shut_down(Nanos now) noexcept override;
  void on_recalled(const lock::Lease &part) noexcept override;

  bool is_held() const { return phase_ == Phase::kHeld; }
  // The part that waits for a lock which the thread of the caller holds; nullptr: none.
  const lock::Request *waits_for_itself() const;
  // The leases of a held one, in the order of their keys.
  std::vector<std::shared_ptr<compound::PartLease>> leases() const;
  // May find that it is lost.
  void maintain(Nanos now) noexcept;
  // It has ended, and its parts with it.
  void give_back(Nanos now) noexcept;
  // It has ended, and another request releases its parts.
  void leave() noexcept;

 private:
  enum class Phase : uint8_t {
    kTrying,   // each name was asked for once
    kOrdered,  // one name is waited for, and those before it are held
    kHeld,
  };

  struct Part {
    size_t place = 0;  // in the list of the caller
    lock::NamedMode what;
    std::shared_ptr<compound::PartRequest> request;  // nullptr: not asked for
    std::shared_ptr<compound::PartLease> lease;

    bool is_open() const { return request && !request->is_finished(); }
    bool is_queued() const { return is_open() && request->is_queued(); }
    bool is_granted() const { return request && request->status.load() == Status::kOk; }
    // It fails whenever it is asked for.
    bool is_refused() const;
    bool is_ours(Nanos now) const {
      return is_granted() && lease->state_at(now) == lock::Lease::kHeld;
    }
  };

  size_t first_missing(Nanos now) const;
  void ask(Part &part, int64_t wait_ms, Nanos now);
  void drop(Part &part, Nanos now) noexcept;
  void drop_from(size_t first, Nanos now) noexcept;
  void count_tries(Nanos now);
  void go_on(Nanos now);
  void grant(Nanos now);
  void fail_by(const Part &part, Nanos now) noexcept;
  static std::string words_of_loss(const Part &part, Nanos now) noexcept;
  void lose(const Part *part, Nanos now) noexcept;

  const Inner &inner_;
  const bool is_try_;
  const Nanos started_;
  const Nanos wait_until_;
  Phase phase_ = Phase::kTrying;
  std::vector<Part> parts_;  // in the order of their keys
};

}  // namespace redlatch::composite
