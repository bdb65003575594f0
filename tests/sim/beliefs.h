// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Beliefs: which clients now believe that they hold a lock, each by its own clock. Checks the rules
// of beliefs: exclusion, fences, lost leases, local hand-offs and forged grants.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "lock/request.h"
#include "schedule.h"
#include "stats.h"
#include "value.h"
#include "verdict.h"

namespace redlatch::sim {

class Checker;

class Beliefs {
 public:
  Beliefs(Schedule &schedule, Stats &stats, Trace &trace, Verdict &verdict)
      : schedule_(schedule), stats_(stats), trace_(trace), verdict_(verdict) {}

  struct Holder {
    int client;  // its slot; negative for a client of another library
    const Clock *clock;
    std::shared_ptr<lock::Lease> lease;  // nullptr for another library, which uses `deadline`
    Nanos deadline = 0;
    std::string token;
    bool is_excused = false;      // exclusion is not promised to it
    Nanos end = kNever;           // of its max_hold, by its own clock
    int max_local_handoffs = -1;  // the limit of local hand-offs before it; -1: not checked
    protocol::Mode mode = protocol::Mode::kWrite;
    std::string owner{};       // of a reentrant lock; '' otherwise
    bool is_attached = false;  // an attach does not return the fence of the lease
    bool is_retained = false;  // its client had kept the lock for no caller
    bool has_fence = true;
    size_t part = 0;             // of several names: its place in the list of the caller
    int permits = 0, limit = 0;  // of a semaphore

    int64_t fence() const {
      return lease->is_composite() ? lease->part_fences.at(part) : lease->fence.load();
    }
  };

  // Called before a client acts: a lease that has ended by now must not be held again.
  void look();
  // Called after a client has acted: checks exclusion and the other rules of holders.
  void check();

  void begin(const std::string &name, Holder holder);
  bool is_known(const lock::Lease &lease) const;
  // The holder of this lease is a reader, or a writer, from now on.
  void change(const lock::Lease &lease, protocol::Mode mode);
  void end(const lock::Lease &lease);
  void end_foreign(const std::string &name, int client);
  // The process of this client has ended, and its beliefs with it.
  void client_died(int client);

  // Exclusion is not promised to any present believer: the server has lost what it acknowledged.
  void excuse_all();
  Nanos excused_all_at() const { return excused_all_at_; }  // the last time
  // Exclusion is not promised to any believer with this token, now or later.
  void excuse(const std::string &token);

  // The fences of a name may begin anew.
  void forget_fence(const std::string &name) { names_[name].last_fence = 0; }

  // Another user of the server published a grant to this token. A client may believe it, but not
  // after `until`, and only if the server can have issued its fence by then.
  void forged(const std::string &token, Nanos until, int64_t highest_fence);

  // Set the checker, which knows what is promised.
  void set_checker(const Checker &checker) { checker_ = &checker; }

  // Visit each holder whose client has not ended the lease, even if its deadline has passed.
  void for_each(
      const std::function<void(const std::string &name, const Holder &holder)> &visit) const;
  size_t count() const;

 private:
  struct Belief {
    Holder holder;
    bool is_over = false;  // the lease has ended, by the holder's clock
  };
  struct Name {
    std::list<Belief> beliefs;
    int64_t last_fence = 0;
    bool is_fence_let_off = false;
    std::string last_token, last_owner;
    int pass_count = 0;  // local hand-offs of last_token
  };

  bool is_held(const Belief &belief) const;
  void check(const std::string &name, Name &entry);
  void check_permits(const std::string &name, const Name &entry);
  void check_fence(const std::string &name, Name &entry, const Holder &holder);

  Schedule &schedule_;
  Stats &stats_;
  Trace &trace_;
  Verdict &verdict_;
  const Checker *checker_ = nullptr;
  std::map<std::string, Name> names_;
  std::set<std::string> excused_;  // tokens
  Nanos excused_all_at_ = -1;
  struct Forged {
    Nanos until = 0;
    int64_t highest_fence = 0;
  };
  std::map<std::string, Forged> forged_;  // by token
};

}  // namespace redlatch::sim
