// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// FanOut: release and extend, sent to the nodes whose votes count; a check, sent to all nodes. A
// release or an extension ends when a majority has carried it out, or cannot do so any more. A
// check ends when all nodes have answered. Later replies are ignored.
#pragma once

#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "quorum/quorum_request.h"
#include "quorum/votes.h"

namespace redlatch::quorum {

class FanOut final : public QuorumRequest {
 public:
  FanOut(Nodes &nodes, Requests &requests, std::shared_ptr<lock::Request> request)
      : QuorumRequest(nodes, requests, std::move(request), nullptr) {}
  ~FanOut() override;

  // Before start().
  void add_all_nodes();
  void add_votes(const Votes &votes);
  void start(Nanos now) noexcept;

  void review(Nanos now) override;
  void on_no_memory(Nanos) noexcept override { end(Status::kOutcomeUnknown); }
  void fail(Status status, std::string_view message, Nanos) noexcept override {
    end(status, message);
  }
  void on_unreachable(size_t node, Nanos now) noexcept override;

 private:
  struct Part {
    size_t node;
    std::shared_ptr<NodeRequest> request;
  };

  NodeRequest &add(size_t node);
  void review_check();
  // kPending: the answers that are missing decide.
  Outcome result() const;

  std::vector<Part> parts_;
};

}  // namespace redlatch::quorum
