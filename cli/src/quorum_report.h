// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The state of a lock on each server of a quorum, the state that follows, and its forms for people
// and programs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "command_client.h"
#include "lock_report.h"

namespace redlatch::cli {

struct NodeReport {
  std::string server;              // The URL without password.
  std::optional<LockReport> lock;  // Nothing if it could not be asked.
  std::string why_no_answer;
  std::string why_no_vote;  // Empty if it votes.
};

// The entry of the client of `token` on this node; its token may differ there.
const LockReport::Holder* holder_with(const NodeReport& node, const std::string& token);

struct QuorumReport {
  enum class State {
    kHeld,      // By one client, on most nodes.
    kFree,      // On all servers that answered, and they are enough.
    kNoQuorum,  // Some nodes are held, or have another key; no client has most nodes.
    kUnknown,   // The other nodes might make it a quorum.
  };

  QuorumReport(std::string name, std::vector<NodeReport> nodes);

  [[nodiscard]] State state() const;
  [[nodiscard]] std::size_t needed_count() const { return nodes.size() / 2 + 1; }
  [[nodiscard]] std::size_t reached_count() const;
  [[nodiscard]] std::size_t voting_count() const;

  std::string name;
  std::vector<NodeReport> nodes;
  // The token that most nodes name; empty: the lock is not held.
  std::string token;
  std::size_t held_count = 0;
  bool is_foreign = false;  // It is that of another lock library.
  std::string who;
  std::string label;
  std::int64_t since_ms = 0;
  std::int64_t remaining_ms = 0;   // Until fewer than needed hold it; -1 = without end.
  std::int64_t server_ms = 0;      // The clock of one of these.
  std::int64_t fence = 0;          // The highest.
  std::int64_t waiting_count = 0;  // At the node with most waiters: each queues at one node.
};

// Asks the servers, all at once.
class QuorumView {
 public:
  // Throws UsageError or Failure. Touches no network.
  explicit QuorumView(const Arguments& arguments);

  [[nodiscard]] QuorumReport report_on(const std::string& name) const;
  // In the order of QuorumReport::nodes.
  [[nodiscard]] const std::vector<CommandClient>& nodes() const { return nodes_; }

 private:
  CommandClient quorum_;
  std::vector<CommandClient> nodes_;
};

// Some lines, each with its end. `is_colored`: the state stands out.
[[nodiscard]] std::string quorum_table(const QuorumReport& report, bool is_colored);

// One object, without a line end.
[[nodiscard]] std::string quorum_json(const QuorumReport& report);

// A line for the lock, as report_tsv(), and one for each node; two columns more: which server, or
// on how many of how many, and whether it votes, or how many do.
[[nodiscard]] std::string quorum_tsv(const QuorumReport& report);

// "held by web-3/4121 (label: ./report.sh) on 3 of 5 servers, 2 waiting".
[[nodiscard]] std::string quorum_sentence(const QuorumReport& report);

}  // namespace redlatch::cli
