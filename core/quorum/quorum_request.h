// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// QuorumRequest: a request of a user to a quorum, whose parts are requests to the clients of nodes.
// Requests: the table of all of them.
#pragma once

#include <memory>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/status.h"
#include "compound/compound.h"
#include "lock/request.h"
#include "quorum/nodes.h"

namespace redlatch::quorum {

// A request to the client of one node, and a lease of that node.
using NodeRequest = compound::PartRequest;
using NodeLease = compound::PartLease;

class QuorumRequest : public compound::Compound {
 public:
  // `lease`: the user's, which the request is to fill; nullptr: it fills none.
  QuorumRequest(Nodes &nodes, compound::Table &requests, std::shared_ptr<lock::Request> request,
                std::shared_ptr<lock::Lease> lease)
      : Compound(requests, std::move(request), std::move(lease)), nodes_(nodes) {}

  // True if it is reviewed when a connection to `node` was made or lost.
  virtual bool awaits(size_t) const noexcept { return request_ != nullptr; }
  // No answer will come from `node`.
  virtual void on_unreachable(size_t, Nanos) noexcept {}
  // `node` may have forgotten what it granted.
  virtual void withdraw_vote(size_t, const Outcome &, Nanos) {}

 protected:
  Nodes &nodes_;
};

class Requests : public compound::Table {
 public:
  using Table::Table;

  void add(const std::shared_ptr<QuorumRequest> &request) { Table::add(request); }
  QuorumRequest *find(const void *subject) const {
    return static_cast<QuorumRequest *>(Table::find(subject));
  }
  template <class Action>
  void for_each(const Action &action) {
    Table::for_each([&](compound::Compound &each) { action(static_cast<QuorumRequest &>(each)); });
  }
};

}  // namespace redlatch::quorum
