// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Jobs: the rules for runs of once and for flights. Written from the text of the protocol: it knows
// the arguments and answers of the scripts, and the results of callers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "lock/request.h"
#include "protocol/scripts.h"
#include "schedule.h"
#include "value.h"
#include "verdict.h"

namespace redlatch::sim {

class Jobs {
 public:
  Jobs(const Schedule &schedule, Verdict &verdict) : schedule_(schedule), verdict_(verdict) {}

  // A script was carried out. `key_count`: of its keys, without the one that never exists.
  void after(protocol::Script script, std::string_view lock, size_t key_count, Argv args,
             const Value &reply, int64_t now_ms);
  // The server has lost its data.
  void forget();
  // The request of a flight that began at `began` has ended with a value, or with a lease.
  void landed(std::string_view lock, const protocol::FlightValue &value, Nanos began);
  void computes(std::string_view lock);

 private:
  struct Period {
    int64_t ends_ms = 0;
    int64_t tries = 0;
    std::string last;  // of the last run: token and hand-offs
    bool is_done = false;
    int64_t done_ms = 0;
  };
  struct Stored {
    std::string text;  // as on the server
    Nanos at = 0;
    Nanos until = 0;
  };
  using Name = std::pair<std::string, std::string>;  // of the lock, and of the period

  void check_begin(const Name &name, Argv args, const Value &reply);
  void note(const std::string &lock, Argv args, int64_t now_ms);

  const Schedule &schedule_;
  Verdict &verdict_;
  std::map<Name, Period> periods_;
  std::map<std::string, std::map<int64_t, Stored>> values_;  // by lock and fence
  std::map<std::string, int64_t> last_values_;               // by lock: the fence of the last one
};

}  // namespace redlatch::sim
