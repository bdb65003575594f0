// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Votes: those of the nodes for one acquire, and later for its lease. A vote is a lease of that
// node's client. They are asked for, counted and given back here; QuorumAcquire decides when.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "lock/request.h"
#include "quorum/nodes.h"
#include "quorum/quorum_request.h"

namespace redlatch::quorum {

struct Vote {
  enum class State : uint8_t {
    kNone,
    kConnecting,  // requested when the node is connected
    kAsked,
    kRaising,  // granted, but the fence of the lease is not written yet
    kYes,
    kNo,           // another client holds the lock
    kUnavailable,  // no reply, or a reply that does not count
  };

  bool is_open() const { return state == State::kAsked || state == State::kConnecting; }
  bool is_granted() const { return state == State::kYes || state == State::kRaising; }
  // Later results of its requests are ignored.
  void reset() noexcept;

  State state = State::kNone;
  Nanos due = kNever;  // kConnecting, kAsked: kUnavailable from then on
  std::shared_ptr<NodeRequest> request;
  std::shared_ptr<NodeLease> lease;
  std::shared_ptr<NodeRequest> fence;  // kRaising: the request that writes it
  Outcome why;                         // kNo, kUnavailable
  std::string blocker;                 // kNo: the client that holds the lock; empty: not known
  uint64_t rid = 0;                    // of the token of the last ACQUIRE sent to the node
  Nanos asked_at = 0;
  bool is_spent = false;  // a RELEASE of the round's token may still reach the node
};

class Votes {
 public:
  static constexpr size_t kNotQueued = SIZE_MAX;

  // The lease, once it is held.
  class Holder {
   public:
    // True if a vote that comes now may count.
    virtual bool is_certain(Nanos now) const = 0;
    // `is_gone`: the node has forgotten it.
    virtual void on_vote_lost(const Vote &vote, bool is_gone, Nanos now) = 0;

   protected:
    ~Holder() = default;
  };

  // The results of its requests mark `owner`.
  Votes(Nodes &nodes, QuorumRequest &owner, const lock::Request &request);
  ~Votes();
  Votes(const Votes &) = delete;
  Votes &operator=(const Votes &) = delete;

  const std::string &name() const { return name_; }
  const lock::AcquireOptions &options() const { return options_; }
  Nanos node_limit() const { return nodes_.limit(options_.ttl); }
  const Vote &operator[](size_t node) const { return votes_[node]; }
  auto begin() const { return votes_.begin(); }
  auto end() const { return votes_.end(); }
  size_t count(Vote::State state) const;
  bool are_enough() const { return count(Vote::State::kYes) >= nodes_.majority(); }
  // The time until which a majority has confirmed the lease; 0 if too few nodes have.
  Nanos valid_until(Nanos now) const;
  // kWrongType if the key holds data on so many nodes that the others are no majority.
  Outcome wrong_type() const;
  // The client that had the lock at the last reply; empty: not known.
  const std::string &blocker() const { return blocker_; }
  void note_blocker(bool is_queued);

  // A round.
  void number_round() { rid_ = nodes_.next_rid(); }
  void ask_all(Nanos now);
  // Takes the results of the requests to nodes.
  void take_answers(Nanos now);
  void mark_unavailable(size_t node, Outcome why, Nanos now);
  // Release what `node` has granted, or may still grant. `is_lost`: the user is being notified.
  void drop(size_t node, Nanos now, bool is_lost = false) noexcept;
  void drop_all(Nanos now, bool is_lost = false) noexcept;

  // A place in the queue of one node.
  size_t queued_at() const { return queued_at_; }
  void queue_at(size_t node, int64_t wait_ms, Nanos now);
  void leave_queue(Nanos now) noexcept;
  // True, once, if the place has led to a grant, or was lost without one.
  bool take_queue_grant() { return std::exchange(was_queue_granted_, false); }
  bool take_queue_loss() { return std::exchange(was_queue_lost_, false); }

  // The highest fence of a majority is above all fences written to a majority before.
  int64_t fence() const { return fence_.value_or(0); }
  void choose_fence();
  void write_fences(Nanos now);

  // A lease that is held.
  void set_holder(Holder &holder, Nanos now);
  void set_ttl(Nanos ttl) { options_.ttl = ttl; }
  // Asks for those that are missing.
  void ask_missing(Nanos now);
  // Asks the nodes whether they still hold it.
  void confirm(Nanos now);
  // Leaves them to their ttl.
  void leave(Nanos now);

 private:
  void ask(size_t node, uint64_t rid, Nanos now, int64_t wait_ms = 0);
  void ask_later(size_t node, Nanos now);
  void take_answer(size_t node, Nanos now);
  void write_fence(size_t node, Nanos now);
  void count_in(size_t node, Nanos now);
  void lose(size_t node, Nanos now);

  Nodes &nodes_;
  QuorumRequest &owner_;
  const std::string name_;
  lock::AcquireOptions options_;
  std::vector<Vote> votes_;  // by node
  Holder *holder_ = nullptr;
  uint64_t rid_ = 0;                // of this round's tokens
  size_t queued_at_ = kNotQueued;   // the node in whose queue it is
  bool was_queue_granted_ = false;  // .. and left that queue with a grant
  bool was_queue_lost_ = false;     // .. or without one
  std::optional<int64_t> fence_;    // to be written to each node before its vote counts
  std::string blocker_;
};

}  // namespace redlatch::quorum
