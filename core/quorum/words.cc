// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "quorum/words.h"

#include "base/message.h"

namespace redlatch::quorum::words {

using lock::Request;

namespace {

int64_t number(size_t count) { return static_cast<int64_t>(count); }

std::string text_of(NodeCount nodes) noexcept {
  return message_of({number(nodes.count), " of ", number(nodes.size), " nodes"});
}

}  // namespace

Text what_of(const Request &request) noexcept {
  switch (request.op) {
    case Request::Op::kUpgrade:
      return "upgrading a lease";
    case Request::Op::kDowngrade:
      return "downgrading a lease";
    case Request::Op::kAttach:
      return "attaching a lease";
    case Request::Op::kBeginRun:
      return "a run of once";
    case Request::Op::kAcquire:
      return "a flight";
    case Request::Op::kRelease:
      return "a run or a flight";
    case Request::Op::kOperate:
      return request.task->what();
    default:
      return "this call";
  }
}

void add_reason(std::string &reasons, Text reason) noexcept {
  std::string longer = message_of({reasons, reasons.empty() ? "" : "; ", reason});
  if (!longer.empty()) reasons = std::move(longer);
}

void add_address(std::string &addresses, const Settings &node) noexcept {
  std::string longer = message_of({addresses, addresses.empty() ? "" : ", ", &node});
  if (!longer.empty()) addresses = std::move(longer);
}

// ---- a node ------------------------------------------------------------------------------------

std::string of_node(const Settings &node, Text why) noexcept {
  return message_of({&node, ": ", why});
}

std::string same_server(const Settings &node, const Settings &other, Text run_id) noexcept {
  return message_of({&node, " and ", &other, " are the same server (run_id ", run_id.substr(0, 8),
                     "..): nodes must be independent"});
}

std::string is_replica(const Settings &node) noexcept {
  return message_of({&node, " is a replica, which has no vote: nodes must be primaries"});
}

std::string is_cluster_member(const Settings &node) noexcept {
  return message_of({&node, " is a member of a cluster: nodes must be independent"});
}

std::string has_unknown_age(const Settings &node, Text why) noexcept {
  return message_of({&node, " does not say when it started (", why,
                     "): allow INFO and TIME, or switch the guard off with restart_guard=off, "
                     "which is safe only if no node ever restarts without its data"});
}

std::string started_lately(const Settings &node, int64_t wait_s) noexcept {
  return message_of({&node, " has started lately: it may vote in ", wait_s, " s (restart_guard)"});
}

std::string has_restarted(const Settings &node) noexcept {
  return message_of({&node, " has restarted"});
}

std::string no_answer_within(const Settings &node, int64_t ms) noexcept {
  return message_of({&node, ": no answer within ", ms, " ms"});
}

std::string too_many_replicas(NodeCount replicas, Text addresses, size_t majority) noexcept {
  return message_of({text_of(replicas), " are replicas (", addresses, "): at least ",
                     number(majority), " must be independent primaries"});
}

// ---- an acquire --------------------------------------------------------------------------------

std::string granted_too_late(Text lock, NodeCount majority, int64_t left_ms) noexcept {
  return message_of({LockName{lock}, " was granted by ", text_of(majority), ", too late: ", left_ms,
                     " ms of its ttl were left; it was released"});
}

std::string fence_unwritten(Text lock, NodeCount written) noexcept {
  return message_of({LockName{lock}, " was granted, but its fence was written to ",
                     text_of(written), " only; it was released"});
}

std::string not_granted(Text lock, NodeCount majority, int64_t wait_ms,
                        const operate::Holder &holder) noexcept {
  return message_of({LockName{lock}, " was not granted by ", text_of(majority), " within ",
                     Seconds{wait_ms}, After{"; holder: ", lock::words::name_of(holder)}});
}

std::string busy(Text lock, NodeCount granted, size_t majority, Text why) noexcept {
  return message_of({LockName{lock}, " was granted by ", text_of(granted), ", and needs ",
                     number(majority), ": ", why});
}

std::string too_few_may_vote(Text lock, NodeCount majority, Text reasons) noexcept {
  const std::string about = lock.empty() ? std::string() : message_of({LockName{lock}, ": "});
  return message_of({about, "too few nodes may vote, ", number(majority.count), " of ",
                     number(majority.size), " are needed", After{"; ", reasons}});
}

std::string wrong_type(Text lock, NodeCount nodes, Text reasons) noexcept {
  return message_of(
      {LockName{lock}, " has data at its keys on ", text_of(nodes), After{": ", reasons}});
}

std::string ttl_above_guard(int64_t guard_ms, int64_t got_ms) noexcept {
  return message_of(
      {"ttl must be at most ", guard_ms, " ms, the restart_guard (got ", got_ms, " ms)"});
}

std::string ttl_below_validity(int64_t validity_ms, int64_t got_ms) noexcept {
  return message_of(
      {"ttl must be above ", validity_ms, " ms, the min_validity (got ", got_ms, " ms)"});
}

// ---- a lease -----------------------------------------------------------------------------------

std::string too_few_have_it(NodeCount nodes, Text reasons) noexcept {
  return message_of({"only ", text_of(nodes), " still have it", After{"; ", reasons}});
}

std::string too_few_had_it(Text reasons) noexcept {
  return message_of({"too few nodes still had it", After{"; ", reasons}});
}

std::string done_in_part(bool is_release, NodeCount nodes, Text reasons) noexcept {
  return message_of({is_release ? "released" : "extended", " on ", text_of(nodes),
                     "; the others did not answer", After{"; ", reasons}});
}

// ---- a check -----------------------------------------------------------------------------------

std::string no_node_asked(Text reasons) noexcept {
  return message_of({"no node can be asked: ", reasons});
}

}  // namespace redlatch::quorum::words
