// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: the simulated network never calls an end that has closed.
#include "network.h"

#include <gtest/gtest.h>

namespace redlatch::sim {

namespace {

struct End final : ClientEnd, ServerEnd {
  void received(uint64_t, Messages) override {}
  void received(uint64_t, CommandList) override {}
  void closed(uint64_t) override { closed_count++; }
  int closed_count = 0;
};

class NetworkTest : public ::testing::Test {
 protected:
  void run() {
    while (schedule_.next_at() != kNever) schedule_.run_next();
  }

  Plan plan_;
  Schedule schedule_;
  Stats stats_;
  Network network_{plan_, schedule_, stats_};
  End client_, server_;
};

TEST_F(NetworkTest, a_reset_notifies_the_client) {
  network_.reset(network_.open(client_, server_));
  run();
  EXPECT_EQ(client_.closed_count, 1);
}

TEST_F(NetworkTest, a_reset_after_the_client_closed_is_not_reported) {
  const uint64_t link = network_.open(client_, server_);
  network_.reset(link);
  network_.close(link, Network::Ending::kSoon);
  run();
  EXPECT_EQ(client_.closed_count, 0);
}

}  // namespace

}  // namespace redlatch::sim
