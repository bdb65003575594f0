// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Operation: an inspection, a list or a forced release, which need no record of a token. It writes
// the commands, reads the answers and says what follows. A request owns it, and ends when it ends.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/reply.h"
#include "base/status.h"
#include "protocol/answer.h"
#include "protocol/command.h"
#include "protocol/keys.h"

namespace redlatch::operate {

struct Listing;
class Recall;

class Operation {
 public:
  using EvalMode = protocol::EvalMode;
  using Features = protocol::ServerFeatures;
  using Send = std::function<void(protocol::Command &)>;

  enum class Next : uint8_t {
    kEnd,    // with the outcome
    kNames,  // the same, once the names of clients are known (Inspect)
    kAgain,  // ask again: the key has another format
    kStep,   // ask for the next step, which has a time limit of its own
    kWait,   // for the other answers of this step
  };
  struct Step {
    Next next = Next::kEnd;
    Outcome outcome = {};
    int64_t server_ms = 0;
    bool has_more = false;  // send SERVE QUEUE
  };

  virtual ~Operation() = default;

  // Called before ask(). The namespace outlives the operation. @return false: ask() is not needed.
  virtual bool begin(std::string_view name_space, std::string_view lock_name) {
    name_space_ = name_space;
    return lock_name.empty() || choose(lock_name);
  }
  // Sends the commands of this step.
  virtual void ask(const Features &features, EvalMode eval, const Send &send) = 0;
  virtual Step on_answer(const Reply &reply) = 0;
  // The lock has moved to another node. nullopt: the request follows it there.
  virtual std::optional<Step> on_left() { return std::nullopt; }
  virtual void on_end(Status) noexcept {}
  // An answer is lost. If is_repeatable(), ask() is called again.
  virtual void on_lost() {}
  virtual bool is_repeatable() const { return true; }
  // The format that is asked first: an operation knows the name only.
  virtual protocol::Format first_format() const { return protocol::kFormats[0]; }
  // For messages: what cannot be done.
  virtual std::string_view what() const = 0;
  // Its result is one InspectAnswer.
  virtual bool is_inspection() const { return false; }
  // It may be asked for a change.
  virtual bool is_election() const { return false; }
  // It is asked of each primary of a cluster, one after the other; nullptr: of a lock's server.
  virtual Listing *as_listing() const { return nullptr; }

  virtual Recall *as_recall() { return nullptr; }

  protocol::Format format() const { return keys_->format; }

  std::string name;  // of the lock; empty: none

 protected:
  bool choose(std::string_view lock_name) {
    name.clear();  // without memory it is about no lock
    keys_ = std::make_unique<protocol::LockKeys>(name_space_, lock_name, first_format());
    name = lock_name;
    return true;
  }
  // Only the name is known: the usual format comes first, and another one if the key has that.
  // @return false: there is no other.
  bool choose_next_format() {
    const auto *next =
        std::find(std::begin(protocol::kFormats), std::end(protocol::kFormats), format()) + 1;
    if (next == std::end(protocol::kFormats)) return false;
    choose_format(*next);
    return true;
  }
  void choose_format(protocol::Format format) {
    keys_ = std::make_unique<protocol::LockKeys>(name_space_, name, format);
  }
  const protocol::LockKeys &keys() const { return *keys_; }
  std::string_view name_space() const { return name_space_; }
  Step refused(const protocol::Refusal &refusal) const {
    return {Next::kEnd, {refusal.status(), protocol::refusal_message(name, refusal)}};
  }

 private:
  std::string_view name_space_;
  std::unique_ptr<const protocol::LockKeys> keys_;
};

// Takes a lock away from its holders.
class Force final : public Operation {
 public:
  std::string token;  // only from the one with this token; empty: from all

  void ask(const Features &features, EvalMode eval, const Send &send) override;
  Step on_answer(const Reply &reply) override;
  // Sent twice it might remove the next holder.
  bool is_repeatable() const override { return false; }
  std::string_view what() const override { return "a forced release"; }
};

// The holders of a lock, and its waiters.
class Inspect : public Operation {
 public:
  protocol::InspectAnswer info;
  size_t unnamed_count = 0;  // names of clients that are asked for

  void ask(const Features &features, EvalMode eval, const Send &send) override;
  Step on_answer(const Reply &reply) override;
  std::string_view what() const override { return "inspecting a lock"; }
  bool is_inspection() const override { return true; }
  // The ids of the clients in `info`.
  std::vector<std::string> clients() const;
  void name_client(std::string_view cid, std::string_view name_text);

 protected:
  void forget_answers() { earlier_ = info = {}; }

 private:
  protocol::InspectAnswer earlier_;  // in the previous format
};

// The numbers of a semaphore, without its holders and waiters.
class Stats final : public Inspect {
 public:
  protocol::Format first_format() const override { return protocol::Format::kPermits; }
  void ask(const Features &features, EvalMode eval, const Send &send) override;
  Step on_answer(const Reply &reply) override;
  std::string_view what() const override { return "the numbers of a semaphore"; }
};

// Caps a semaphore: an operator's limit, beside those of the callers.
class SetCap final : public Operation {
 public:
  std::optional<int64_t> cap;  // nullopt: none from now on
  int64_t for_ms = 0;          // 0: no end of its own

  protocol::Format first_format() const override { return protocol::Format::kPermits; }
  void ask(const Features &features, EvalMode eval, const Send &send) override;
  Step on_answer(const Reply &reply) override;
  std::string_view what() const override { return "the cap of a semaphore"; }
};

// The value of a flight.
class GetValue final : public Operation {
 public:
  std::shared_ptr<const protocol::FlightValue> value;  // nullptr: no value is stored

  void ask(const Features &features, EvalMode eval, const Send &send) override;
  Step on_answer(const Reply &reply) override;
  std::string_view what() const override { return "a flight"; }
};

// The leader of an election and its candidates: the holder of the lock and its waiters that have an
// id. Terms never fall: after a failover a server may show a leader of the past, who is left out.
class Leader final : public Inspect {
 public:
  // The `position` of the last answer that the caller has; -1: it has none.
  int64_t seen = -1;

  Step on_answer(const Reply &reply) override;
  std::string_view what() const override { return "an election"; }
  bool is_election() const override { return true; }
  bool is_news() const { return info.position != seen; }
};

// Has the server report the next change of the lock's key.
class TrackKey final : public Operation {
 public:
  bool is_tracked = false;

  void ask(const Features &features, EvalMode eval, const Send &send) override;
  Step on_answer(const Reply &reply) override;
  std::string_view what() const override { return "an election"; }
  bool is_election() const override { return true; }
  std::string_view key() const { return keys().lock; }

 private:
  size_t awaited_count_ = 0;  // answers
};

// Asks the holders of a lock to finish.
class Recall final : public Operation {
 public:
  std::string reason;  // for people
  int64_t heard = 0;   // the number of holders whose client the message has reached

  void ask(const Features &features, EvalMode eval, const Send &send) override;
  Step on_answer(const Reply &reply) override;
  std::string_view what() const override { return "a recall"; }
  Recall *as_recall() override { return this; }
};

// Forgets the runs of once.
class OnceForget final : public Operation {
 public:
  void ask(const Features &features, EvalMode eval, const Send &send) override;
  Step on_answer(const Reply &reply) override;
  std::string_view what() const override { return "forgetting runs"; }
};

// The locks of a server. The operations of a listing follow one another; each goes to one lock.
struct Listing {
  std::string pattern;  // of keys
  size_t node = 0;      // of a cluster, by number of the server in its map
  std::string cursor = "0";
  bool is_last_step = false;
  std::vector<std::string> keys;    // found, and not yet inspected
  std::set<std::string> seen_keys;  // a server may find a key twice
};

class List final : public Inspect {
 public:
  std::shared_ptr<Listing> listing;

  bool begin(std::string_view name_space, std::string_view) override;
  void ask(const Features &features, EvalMode eval, const Send &send) override;
  Step on_answer(const Reply &reply) override;
  std::optional<Step> on_left() override;
  void on_end(Status status) noexcept override;
  // The step is repeated from its SCAN.
  void on_lost() override { unseen_count_ = 0; }
  std::string_view what() const override { return "listing locks"; }
  bool is_inspection() const override { return false; }
  Listing *as_listing() const override { return listing.get(); }

 private:
  bool choose_key();
  Step on_found();
  Step on_seen(const Reply &reply);
  Step next();

  protocol::ListAnswer found_;  // the keys of one step
  size_t unseen_count_ = 0;     // its last ones, which were not looked at
};

}  // namespace redlatch::operate
