// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Caller: a thread of a user's program. It acquires locks, holds them for a while, and gives them
// back in every way that the product has.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client.h"
#include "context.h"
#include "random.h"

namespace redlatch::sim {

// A lease that its client has detached, for another client to attach.
struct GivenLease {
  std::string name, token;
  int permits = 1;
};

class Caller {
 public:
  Caller(Context &context, Client &client, uint64_t stream);
  ~Caller();
  Caller(const Caller &) = delete;
  Caller &operator=(const Caller &) = delete;

  void begin();
  // Attach this lease. @return false if the caller is busy or its process paused.
  bool take(const GivenLease &given);
  std::function<void(const GivenLease &)> on_given;

  // When its wait without a limit began; kNever if it is not in such a wait.
  Nanos waiting_since() const;
  const std::string &name() const { return name_; }
  bool is_idle() const { return !request_ && !lease_; }
  // The work is over: release the lease that it holds.
  void wind_up();

 private:
  void later(Nanos delay, void (Caller::*action)());
  void think();
  void act();
  void acquire();
  void ask(lock::Request::What what);
  void inspect();
  void observe();
  void on_observed();
  void force();
  void set_cap();
  template <class Fill>
  void start(lock::Request::What what, void (Caller::*then)(), const Fill &fill);
  void check_wait(const lock::Request &request);
  void on_acquired();
  void on_extended();
  void on_other();
  void hold();
  void change_mode();
  void on_mode_changed();
  void fly();
  void begin_run();
  void on_run_begun();
  void end_job();
  void give_back();
  void detach();
  void on_detached();
  void release();
  void cancel();
  lock::AcquireOptions options();
  void share(lock::AcquireOptions &options);
  void choose_names(lock::Request &request);
  std::string any_name();

  Context &context_;
  Client &client_;
  Random random_;
  const std::shared_ptr<bool> is_alive_;

  std::string name_;
  std::shared_ptr<lock::Request> request_;  // while one is pending
  std::shared_ptr<lock::Lease> lease_;      // while it holds
  Nanos asked_at_ = 0;
  enum class Job : uint8_t { kNone, kRun, kFlight };
  Job job_ = Job::kNone;                 // for which it holds
  std::string period_;                   // of a run
  std::map<std::string, int64_t> seen_;  // leaders, by election
  uint64_t turn_ = 0;  // number of its current action; events of earlier ones are ignored
};

// A simulated process.
struct Slot {
  std::unique_ptr<Client> client;  // nullptr while the process does not exist
  std::vector<std::unique_ptr<Caller>> callers;
  uint64_t life = 0;  // how many processes have started in this slot
};

std::string lock_name(int number);

}  // namespace redlatch::sim
