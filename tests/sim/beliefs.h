// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Beliefs: who thinks at this moment that a lock is theirs, each by its own clock. The rules about
// what clients may believe, and about what they may send.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "lock/subjects.h"
#include "schedule.h"
#include "tally.h"
#include "value.h"
#include "verdict.h"

namespace redlatch::sim {

class Judge;

class Beliefs {
 public:
  Beliefs(Schedule &schedule, Tally &tally, Trace &trace, Verdict &verdict)
      : schedule_(schedule), tally_(tally), trace_(trace), verdict_(verdict) {}

  struct Holder {
    int client;  // its slot; negative: of another library
    const Clock *clock;
    std::shared_ptr<lock::Lease> lease;  // none for another library, whose deadline stands here
    Nanos deadline = 0;
    std::string token;
    bool is_excused = false;  // nobody promised that it is alone
    Nanos end = kNever;       // of the longest hold, by its own clock
    int local_burst = -1;     // how often it may have been passed on before; -1: not judged
    protocol::Mode mode = protocol::Mode::kWrite;
    std::string owner{};       // who may have it more than once; '': nobody
    bool is_attached = false;  // whoever takes over a lease is not told its fence
    bool has_fence = true;
  };

  // Something is about to happen to clients: whoever has lost by now must not come back.
  void look();
  // A client has done something: is anybody not alone?
  void judge();

  void begin(const std::string &name, Holder holder);
  bool is_known(const lock::Lease &lease) const;
  // It reads now, or writes.
  void change(const lock::Lease &lease, protocol::Mode mode);
  void end(const lock::Lease &lease);
  void end_foreign(const std::string &name, int client);
  // The process of this client is gone, and with it what it thought.
  void client_died(int client);

  // Nobody promises that whoever believes now is alone: the server has lost what it acknowledged.
  void excuse_all();
  // .. nor whoever holds, or comes to believe that it holds, by this token.
  void excuse(const std::string &token);

  // Another user of the server published a grant to this token: it may be believed, but no longer
  // than `until`, and its fence must be one that the server can have minted by then.
  void forged(const std::string &token, Nanos until, int64_t highest_fence);

  // Who knows what is promised.
  void judge_by(const Judge &judge) { judge_ = &judge; }

  // Whoever has not been told that it is over, by its clock or not.
  void for_each(
      const std::function<void(const std::string &name, const Holder &holder)> &visit) const;
  size_t count() const;

 private:
  struct Belief {
    Holder holder;
    bool is_over = false;  // by its own clock
  };
  struct Name {
    std::list<Belief> beliefs;
    int64_t last_fence = 0;
    bool is_fence_let_off = false;
    std::string last_token, last_owner;
    int pass_count = 0;  // of that token
  };

  bool is_held(const Belief &belief) const;
  void judge(const std::string &name, Name &entry);
  void judge_fence(const std::string &name, Name &entry, const Holder &holder);

  Schedule &schedule_;
  Tally &tally_;
  Trace &trace_;
  Verdict &verdict_;
  const Judge *judge_ = nullptr;
  std::map<std::string, Name> names_;
  std::set<std::string> excused_;  // tokens
  struct Forged {
    Nanos until = 0;
    int64_t highest_fence = 0;
  };
  std::map<std::string, Forged> forged_;  // by token
};

}  // namespace redlatch::sim
