// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Rules: the rules for one server's data and the commands of clients, checked after every command.
// Written from the text of the protocol, not from the scripts: it knows their arguments and keys,
// and none of their logic.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "checker.h"
#include "elections.h"
#include "jobs.h"
#include "plan.h"
#include "protocol/scripts.h"
#include "protocol/token.h"
#include "schedule.h"
#include "server.h"
#include "verdict.h"

namespace redlatch::sim {

using protocol::kCidSize;
using protocol::kShared;
using protocol::kTokenSize;

inline constexpr Nanos kWatchInterval = 500 * kMs;  // between two calls of Checker::watch()

class Rules : public Witness, public Checker, protected RuleParts {
 public:
  Rules(const RuleParts &parts, Server &server) : RuleParts(parts), server_(&server) {}

  // Another server has become the primary: its data count from now on.
  void follow(Server &server);
  // The lock has moved to `server`, with all that it is. `other` has some keys; nullptr: none.
  void move(Server &server, const Server *other);
  // The readers' key was extended alone: for a lease the lock's key may end earlier.
  void note_apart() { apart_until_ = schedule_.now() + plan_.lease_max; }
  // Whether the server holds the lock for this token.
  bool is_held_by(std::string_view lock, const std::string &token) const override;
  // The key of the holds of readers; empty if there is none.
  std::string_view readers_of(std::string_view lock) const;
  // The leases that a store has for the lock: token to end.
  using Leases = std::map<std::string, int64_t, std::less<>>;
  Leases leases_at(const Store &store, std::string_view lock) const;
  // A server that is no primary has queued the member with this ticket.
  void note_ticket(std::string_view member, double ticket) {
    tickets_[std::string(member)].insert(ticket);
    const auto asker = askers_.find(member);
    if (asker != askers_.end()) given_[asker->second].insert(ticket);
  }
  // What an ACQUIRE asks for; nullopt: `argv` is none.
  struct Asking {
    std::string_view token, member, ticket;
  };
  static std::optional<Asking> asked(Argv argv);
  // The token that a RELEASE is about; empty: `argv` is none.
  static std::string_view released(Argv argv);
  // The member that a CANCEL is about; empty: `argv` is none.
  static std::string_view cancelled(Argv argv);

  // Checker
  void sent(size_t node, int client, Argv argv) override;
  void granted(const lock::Request &request, Nanos last_reply_at, Beliefs::Holder &holder) override;
  void landed(const lock::Request &request, Nanos began) override;
  void succeeded(const lock::Request &request) override;
  // From now on the token must not be renewed.
  void told(const std::string &token) override;
  void given_up(const std::string &token) override {
    given_up_.insert(token);
    asked_[token].left_at = schedule_.now();
  }
  bool was_granted(const std::string &token) const override { return granted_.contains(token); }
  void forgets(size_t node, Fault why) override;
  void stepped(size_t node, Nanos by) override;
  std::vector<std::pair<std::string, std::string>> waiters() const override;
  void watch(const Context &context) override;
  void check_leftovers(Nanos gone_for) override;

  // Witness
  void before(Argv argv, int64_t now_us) override;
  void after(Argv argv, const Value &reply, int64_t now_us) override;
  void forgotten() override;
  void changed(std::string_view key) override;
  void queued(std::string_view key, std::string_view member, double score) override;
  void dequeued(std::string_view key, std::string_view member, double score) override;

 private:
  struct Call {
    std::optional<protocol::Script> script;
    std::string_view lock, queue, fence, readers, turn, cap;  // keys
    std::string_view token;                                   // of the caller; '' if it has none
    std::string_view member, ticket;
    std::string_view owner, sibling, claim;
    protocol::Format format = protocol::Format::kString;
    int64_t ttl_ms = 0;
    bool is_foreign_delete = false;
    size_t key_count = 0;  // without the one that never exists
    Argv args;

    bool is_acquire() const {
      return script == protocol::Script::kAcquire || script == protocol::Script::kAcquireRead;
    }
  };
  struct Lock {
    std::string holder;  // the token that has it alone; kShared; for a hash, its owner
    int64_t expires_ms = -1;
    int64_t last_expires_ms = -1;  // of the last key
    // For readers, and for an owner: token to the end of the hold.
    std::map<std::string, int64_t> holds;
    std::string hold_owners;  // for a hash: another owner with a hold beside its owner
    int64_t count = 0;        // for a hash: the count in the key
    // For a semaphore, whose holder is kShared here: token to permits, of those in `holds`; the sum
    // of all entries; the number in the key; the cap, or -1.
    std::map<std::string, int64_t> permits;
    int64_t sum = 0, used = 0, cap = -1;
    bool has_permits = false;
    int64_t out() const;
    bool is_hash = false;
    bool is_foreign = false;  // for a hash: its owner is of another library
    int64_t last_fence = 0;   // of a grant
    int64_t owner_fence = 0;  // .. that has made a new owner
    int64_t seen_fence = 0;   // the highest that the server had
    Nanos granted_at = 0;
    int64_t granted_fence = 0;
    Nanos idle_since = -1;
    std::set<std::string, std::less<>> lookers;  // members that asked while it was held so
    // After another library's release: when that was, and the live waiters that can notice it.
    Nanos freed_at = -1;
    std::vector<std::string> heirs;
  };
  // The contents of the key W: see fragments/turn.lua.
  struct Turn {
    bool is_marked = false;
    int64_t count = 0, missed = 0, since_ms = 0;
    bool is_window = false;
  };

  static Call read(Argv argv);
  static void read_arguments(Call &call, Argv args, bool is_hash);
  Lock lock_at(std::string_view lock, std::string_view readers, int64_t now_ms) const;
  static bool is_there(const Store::Entry &entry, int64_t now_ms) {
    return entry.expires_ms < 0 || entry.expires_ms >= now_ms;
  }
  void read_cap(std::string_view lock, Lock &is, int64_t now_ms) const;
  static void read_alone(Lock &is, int64_t now_ms);
  // The key of a semaphore with one holder, which the key names.
  static bool is_alone(std::string_view value) {
    return value.starts_with(protocol::kPermitsPrefix) && value.find(' ') != std::string_view::npos;
  }
  static std::string alone_in(std::string_view value) {
    return std::string(value.substr(value.find(' ') + 1, kTokenSize));
  }
  void check_place(const Call &call, const Value &reply);
  void check_holder(const Call &call, const Lock &was, const Lock &is, int64_t now_ms);
  void check_expiry(const Call &call, const Lock &was, const Lock &is, int64_t now_ms);
  void check_grant(const Call &call, const std::string &token, const Lock &was, const Lock &is,
                   int64_t now_ms);
  void check_turn(const Call &call, const std::string &token, const Lock &was, const Lock &is,
                  double ticket, int64_t now_ms);
  void check_queue(const Call &call, const Lock &was, const Lock &is, int64_t now_ms);
  void check_fence(const Call &call, const Lock &was, Lock &is);
  void check_keys();
  // rules_sharing.cc
  using Ends = std::map<std::string, int64_t>;
  static Ends ends_of(const Lock &lock);
  void check_sharing(const Call &call, const Lock &was, const Lock &is, int64_t now_ms);
  void check_scenario(const Call &call, const Lock &was, const Lock &is, int64_t now_ms);
  void check_ended(const Call &call, const std::string &token, const Lock &is);
  void check_changed(const Call &call, const std::string &token, int64_t before, int64_t after,
                     int64_t now_ms);
  void check_new(const Call &call, const std::string &token, int64_t end, const Lock &was,
                 const Lock &is, int64_t now_ms);
  void check_answer(const Call &call, const Lock &was, const Lock &is, const Value &reply,
                    int64_t now_ms);
  void check_served(const Call &call, const Lock &is, const Value &reply, int64_t now_ms);
  void check_downgrade(int client, const Call &call);
  void check_permits(const Call &call, const Lock &was, const Lock &is, int64_t now_ms);
  // rules_others.cc
  void note_asker(int client, const Call &call);
  Turn turn_at(std::string_view key, int64_t now_ms) const;
  bool is_waited_for(const Context &context, const std::string &lock) const;
  void excuse_holders();
  void take_by_force(const std::string &token);
  void clock_went_back();
  void check_others(const Call &call, const Lock &was, Lock &lock, int64_t now_ms);
  void check_turns(const Call &call, const Lock &was, const Lock &is, int64_t now_ms);
  void check_freed(const Call &call, const Lock &was, Lock &lock, int64_t now_ms);
  bool is_for_nothing(std::string_view member, const Lock &was, const Lock &is) const;
  bool can_enter(std::string_view member, const Lock &is) const;
  bool can_have(std::string_view member, const Lock &is) const;
  // One script call passes over fewer than so many.
  int most_looked_at() const { return plan_.has_small_cap ? 2 : 256; }
  static bool is_passed_over(std::string_view member, const Lock &is);
  void note_holds(const Call &call, const Lock &was, const Lock &is);
  void check_runout(std::string_view lock, const Lock &was);
  void check_renewal(const Call &call, const Lock &is);
  void check_release(int client, const Call &call);
  void note_lease(const Call &call);
  int64_t granted_ms(const Call &call, std::string_view token) const;
  bool is_overdue(std::string_view member, double score, int64_t now_ms) const;
  bool is_dead(std::string_view member) const;
  const Store::SortedSet *queue_at(std::string_view key) const;
  const Store::Entry *entry_at(std::string_view key) const;

  Jobs jobs_{schedule_, verdict_};
  Elections elections_{verdict_};
  Server *server_;
  const Server *other_ = nullptr;  // has some keys while a slot moves
  Nanos jumped_at_ = -kNever;      // the server's clock, forward
  Nanos apart_until_ = 0;

  // Only for lookups: their order must not influence a run.
  struct TextHash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  using Texts = std::unordered_set<std::string, TextHash, std::equal_to<>>;
  template <class Value>
  using ByText = std::unordered_map<std::string, Value, TextHash, std::equal_to<>>;

  std::map<std::string, Lock, std::less<>> locks_;              // by key
  std::map<std::string, std::map<std::string, Nanos>> recent_;  // by lock: token to grant time
  std::map<std::string, std::string, std::less<>> queue_of_;    // lock key to queue key
  std::map<std::string, std::string, std::less<>> readers_of_;  // lock key to the key of its holds
  std::map<std::string, std::string, std::less<>> cap_of_;      // lock key to the key of its cap
  ByText<std::string> asked_for_;                               // token to lock key
  Texts given_up_, released_, granted_;                         // tokens
  Texts owners_;                                                // of hashes, named by our clients
  // The grant of a token, as its client learnt of it.
  struct Told {
    Nanos at = 0;
    int64_t fence = 0;
  };
  ByText<Told> told_;
  // The end of the longest lease asked for by a token, and when its client gave it up.
  struct Asked {
    Nanos until = 0;
    Nanos left_at = -1;
  };
  ByText<Asked> asked_;
  ByText<std::set<double>> tickets_;       // member to the tickets it was given
  ByText<int> askers_;                     // member to its client
  std::map<int, std::set<double>> given_;  // client to the tickets of all its members
  // Tokens that became writers although the upgrade was cancelled, and their renewals since.
  ByText<int> descents_;

  // During one command.
  struct Gone {
    std::string key, member;
    double score;
  };
  bool is_running_ = false;
  Call call_;
  Turn turn_;  // before the command
  std::vector<Gone> gone_;
  std::vector<std::string> changed_;
  double last_ticket_ = 0;  // the highest in the queue before the command
};

}  // namespace redlatch::sim
