// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "quorum_report.h"

#include <algorithm>
#include <functional>
#include <future>
#include <map>
#include <utility>

#include "duration.h"
#include "handles.h"
#include "json.h"
#include "text.h"

namespace redlatch::cli {
namespace {

// A client has another token on the node where it queued, and where it was late. The client's part
// of all of them is the same.
bool is_same_client(const std::string& a, const std::string& b) {
  constexpr std::size_t kClientSize = 22;
  if (a.size() != RL_TOKEN_BYTES || b.size() != RL_TOKEN_BYTES) return a == b;
  return a.compare(0, kClientSize, b, 0, kClientSize) == 0;
}

std::string most_named_token(const std::vector<NodeReport>& nodes) {
  std::map<std::string, std::size_t> counts;
  for (const NodeReport& node : nodes) {
    if (!node.lock) continue;
    for (const LockReport::Holder& holder : node.lock->holders) counts.try_emplace(holder.token);
  }
  for (auto& [token, count] : counts) {
    count = static_cast<std::size_t>(
        std::count_if(nodes.begin(), nodes.end(),
                      [&](const NodeReport& node) { return holder_with(node, token) != nullptr; }));
  }
  const auto most =
      std::max_element(counts.begin(), counts.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == counts.end() ? "" : most->first;
}

const char* state_name(const QuorumReport& report) {
  switch (report.state()) {
    case QuorumReport::State::kHeld:
      return report.is_foreign ? "foreign" : "held";
    case QuorumReport::State::kFree:
      return "free";
    case QuorumReport::State::kNoQuorum:
      return "no_quorum";
    default:
      return "unknown";
  }
}

std::string held_on(const QuorumReport& report) {
  return std::to_string(report.held_count) + " of " + std::to_string(report.nodes.size()) +
         " servers";
}

std::string state_in_words(const QuorumReport& report) {
  switch (report.state()) {
    case QuorumReport::State::kHeld:
      return (report.is_foreign ? "HELD by another lock library on " : "HELD on ") +
             held_on(report) + ", a majority";
    case QuorumReport::State::kFree:
      return "FREE";
    case QuorumReport::State::kNoQuorum:
      return "NO QUORUM: held on " + held_on(report);
    default:
      return "UNKNOWN: " + std::to_string(report.reached_count()) + " of " +
             std::to_string(report.nodes.size()) + " servers answer";
  }
}

std::string lock_in_words(const LockReport& lock) {
  std::string text = lock.is_endless() ? kEndless : "held by another lock library";
  if (lock.state == RL_STATE_FREE) {
    text = "free";
  } else if (lock.state == RL_STATE_NO_LOCK) {
    text = "no lock: a key of the type " + escaped(lock.type);
  } else if (lock.state == RL_STATE_HELD) {
    const std::string& who = lock.holders.empty() ? "" : lock.holders.front().who;
    text = who.empty() ? "held" : "held by " + escaped(who);
  }
  if (!lock.is_free() && lock.remaining_ms >= 0)
    text += ", " + span_text(lock.remaining_ms) + " left";
  if (lock.fence > 0) text += ", fence " + std::to_string(lock.fence);
  if (lock.waiting_count > 0) text += ", " + std::to_string(lock.waiting_count) + " waiting";
  return text;
}

std::string node_in_words(const NodeReport& node) {
  if (!node.lock) return node.server + " does not answer: " + escaped(node.why_no_answer);
  const std::string vote =
      node.why_no_vote.empty() ? " votes: " : " has no vote (" + escaped(node.why_no_vote) + "): ";
  return node.server + vote + lock_in_words(*node.lock);
}

std::string node_json(const NodeReport& node) {
  JsonObject object;
  object.text("server", node.server);
  object.raw("votes", node.why_no_vote.empty() ? "true" : "false");
  if (!node.why_no_vote.empty()) object.text("why_no_vote", node.why_no_vote);
  if (node.lock) {
    object.raw("lock", report_json(*node.lock, node.server));
  } else {
    object.text("why_no_answer", node.why_no_answer);
  }
  return object.done();
}

std::string tsv_line(const std::vector<std::string>& cells) {
  std::string line;
  for (const std::string& cell : cells) {
    line += (line.empty() ? "" : "\t") + (cell.empty() ? "-" : cell);
  }
  return line + "\n";
}

std::string number_above_0(std::int64_t number) { return number > 0 ? std::to_string(number) : ""; }

std::string node_tsv(const QuorumReport& report, const NodeReport& node) {
  const std::string vote = node.why_no_vote.empty() ? "votes" : escaped(node.why_no_vote);
  if (!node.lock) {
    const std::string why = escaped(node.why_no_answer);
    return tsv_line({escaped(report.name), "unknown", "", "", "", "", "", "", node.server, why});
  }
  std::string line = report_tsv(*node.lock);
  line.pop_back();
  return line + "\t" + node.server + "\t" + vote + "\n";
}

// Connecting may take as long as the slowest server needs: a slow one must not be shown as away.
Arguments with_patience(Arguments arguments) {
  arguments.options.set("node_timeout", "1m");
  return arguments;
}

}  // namespace

const LockReport::Holder* holder_with(const NodeReport& node, const std::string& token) {
  if (!node.lock) return nullptr;
  const auto& holders = node.lock->holders;
  const auto found = std::find_if(holders.begin(), holders.end(), [&](const auto& holder) {
    return is_same_client(holder.token, token);
  });
  return found == holders.end() ? nullptr : &*found;
}

QuorumReport::QuorumReport(std::string name_, std::vector<NodeReport> nodes_)
    : name(std::move(name_)), nodes(std::move(nodes_)), token(most_named_token(nodes)) {
  std::vector<std::int64_t> left;
  for (const NodeReport& node : nodes) {
    if (!node.lock) continue;
    fence = std::max(fence, node.lock->fence);
    waiting_count = std::max(waiting_count, node.lock->waiting_count);
    const LockReport::Holder* holder = holder_with(node, token);
    if (holder == nullptr) continue;
    ++held_count;
    is_foreign = node.lock->state == RL_STATE_FOREIGN;
    left.push_back(holder->remaining_ms < 0 ? INT64_MAX : holder->remaining_ms);
    if (who.empty()) who = holder->who;
    if (label.empty()) label = holder->label;
    if (holder->since_ms > 0 && (since_ms == 0 || holder->since_ms < since_ms)) {
      since_ms = holder->since_ms;
    }
    server_ms = node.lock->server_ms;
  }
  if (held_count < needed_count()) return;
  std::sort(left.begin(), left.end(), std::greater<>());
  remaining_ms = left[needed_count() - 1];
  if (remaining_ms == INT64_MAX) remaining_ms = -1;
}

QuorumReport::State QuorumReport::state() const {
  if (held_count >= needed_count()) return State::kHeld;
  if (held_count + nodes.size() - reached_count() >= needed_count()) return State::kUnknown;
  const bool is_free = std::all_of(nodes.begin(), nodes.end(), [](const NodeReport& node) {
    return !node.lock || node.lock->is_free();
  });
  return is_free ? State::kFree : State::kNoQuorum;
}

std::size_t QuorumReport::reached_count() const {
  return static_cast<std::size_t>(std::count_if(
      nodes.begin(), nodes.end(), [](const NodeReport& node) { return node.lock.has_value(); }));
}

std::size_t QuorumReport::voting_count() const {
  return static_cast<std::size_t>(std::count_if(
      nodes.begin(), nodes.end(), [](const NodeReport& node) { return node.why_no_vote.empty(); }));
}

QuorumView::QuorumView(const Arguments& arguments) : quorum_(with_patience(arguments)) {
  for (const std::string& url : server_urls(arguments)) nodes_.emplace_back(arguments, url);
}

QuorumReport QuorumView::report_on(const std::string& name) const {
  const RequestHandle connection(not_null(rl_client_connect_start(quorum_.handle(), 0)));
  std::vector<std::future<InfoHandle>> infos;
  for (const CommandClient& node : nodes_) {
    infos.push_back(std::async(std::launch::async, [&] { return node.try_inspect(name); }));
  }
  std::vector<NodeReport> nodes;
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    NodeReport& node = nodes.emplace_back();
    node.server = nodes_[i].server();
    if (const InfoHandle info = infos[i].get()) {
      node.lock.emplace(info.get());
    } else {
      node.why_no_answer = rl_error_message(nodes_[i].error());
    }
  }
  // That has tried each, too.
  while (rl_request_wait(connection.get(), -1) == RL_INTERRUPTED) continue;
  const std::vector<NodeStatus> statuses = quorum_.nodes();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (statuses[i].votes()) continue;
    nodes[i].why_no_vote = statuses[i].reason.empty() ? "not known" : statuses[i].reason;
  }
  return {name, std::move(nodes)};
}

std::string quorum_table(const QuorumReport& report, bool is_colored) {
  std::string out = escaped(report.name);
  out.resize(std::max<std::size_t>(out.size(), 20), ' ');
  out += "  " + bold(state_in_words(report), is_colored) + "\n";
  if (!report.who.empty()) out += report_line("holder", escaped(report.who));
  if (!report.label.empty()) out += report_line("label", escaped(report.label));
  if (!report.token.empty()) out += report_line("token", escaped(cut(report.token, 64)));
  if (report.since_ms > 0) {
    out += report_line("since", date_text(report.since_ms) + " (" +
                                    span_text(report.server_ms - report.since_ms) + ")");
  }
  if (report.remaining_ms > 0) {
    out += report_line("lease", "until " + date_text(report.server_ms + report.remaining_ms) +
                                    " (" + span_text(report.remaining_ms) + " left)");
  }
  if (report.remaining_ms > 0 && !report.is_foreign) {
    out += report_line("stops",
                       stop_text(report.server_ms, report.remaining_ms) + " if it is removed now");
  }
  for (const NodeReport& node : report.nodes) out += report_line("node", node_in_words(node));
  return out;
}

std::string quorum_json(const QuorumReport& report) {
  JsonObject object;
  object.number("schema", 1).text("name", report.name);
  if (!is_utf8(report.name)) object.raw("name_is_escaped", "true");
  object.text("state", state_name(report));
  if (!report.who.empty()) object.text("holder", report.who);
  if (!report.label.empty()) object.text("label", report.label);
  if (!report.token.empty()) object.text("token", report.token);
  if (report.since_ms > 0) object.text("acquired_at", date_ms_text(report.since_ms));
  if (report.remaining_ms > 0) {
    object.text("lease_until", date_ms_text(report.server_ms + report.remaining_ms));
    object.number("remaining_ms", report.remaining_ms);
  }
  const auto count = [&object](const char* key, std::size_t number) {
    object.number(key, static_cast<std::int64_t>(number));
  };
  count("held_on", report.held_count);
  count("needed", report.needed_count());
  count("reached", report.reached_count());
  count("voting", report.voting_count());
  object.number("waiting", report.waiting_count);
  return object.raw("nodes", json_array(report.nodes, node_json)).done();
}

std::string quorum_tsv(const QuorumReport& report) {
  const bool is_held = report.state() == QuorumReport::State::kHeld;
  const std::int64_t held_ms =
      is_held && report.since_ms > 0 ? report.server_ms - report.since_ms : 0;
  const std::string node_count = std::to_string(report.nodes.size());
  std::string out = tsv_line({escaped(report.name), state_name(report),
                              is_held && !report.is_foreign ? "exclusive" : "", escaped(report.who),
                              number_above_0(held_ms), number_above_0(report.remaining_ms),
                              number_above_0(report.fence), std::to_string(report.waiting_count),
                              std::to_string(report.held_count) + "/" + node_count,
                              std::to_string(report.voting_count()) + "/" + node_count});
  for (const NodeReport& node : report.nodes) out += node_tsv(report, node);
  return out;
}

std::string quorum_sentence(const QuorumReport& report) {
  const std::string who =
      report.is_foreign ? "another lock library" : who_in_words(report.who, report.label);
  const bool is_endless = report.is_foreign && report.remaining_ms < 0;
  std::string text = (is_endless ? kEndless : "held by " + who) + " on " + held_on(report);
  if (report.held_count == 0) text = "it is not held any more";
  text += ", " + std::to_string(report.waiting_count) + " waiting";
  return is_endless ? text + kOtherName : text;
}

}  // namespace redlatch::cli
