// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// AllPrimaries: what is asked of all primaries of a cluster, listings and checks.
#pragma once

#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "cluster/router.h"
#include "lock/service.h"

namespace redlatch::cluster {

class AllPrimaries {
 public:
  // All outlive it. The map is known when a request starts.
  AllPrimaries(const Settings &settings, Router &router, lock::Output &output)
      : settings_(settings), router_(router), output_(output) {}

  void start_list(const std::shared_ptr<lock::Request> &request, Nanos now);
  // @return whether another primary is to be asked next.
  bool continues_list(const std::shared_ptr<lock::Request> &request);
  void start_check(const std::shared_ptr<lock::Request> &request, Nanos now);
  // @return false: it is no check.
  bool cancel(const lock::Request &request, Nanos now);
  // Ends checks, and continues listings.
  void carry_out(Nanos now);
  bool has_lists() const { return !lists_.empty(); }

 private:
  // A request for the health of all primaries, and a part of it for each.
  struct Part {
    size_t node;
    std::shared_ptr<lock::Request> request;
  };
  struct Check {
    std::shared_ptr<lock::Request> request;
    std::vector<Part> parts;
  };

  void end_checks();
  size_t next_primary(size_t number) const;
  size_t node_of(size_t primary, Nanos now);
  void refuse(lock::Request &request, size_t primary);
  void finish(lock::Request &request, Status status, std::string_view message);

  const Settings &settings_;
  Router &router_;
  lock::Output &output_;
  std::vector<std::shared_ptr<lock::Request>> lists_;  // to be continued at another node
  std::vector<Check> checks_;
};

}  // namespace redlatch::cluster
