// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include <algorithm>
#include <utility>

#include "operate/operation.h"

namespace redlatch::operate {

namespace {

std::string_view client_of(std::string_view token) { return token.substr(0, protocol::kCidSize); }

}  // namespace

void Inspect::ask(const Features &features, EvalMode eval, const Send &send) {
  protocol::Command command;
  const std::string mark_key = protocol::mark_key(keys());
  const std::string candidates_key = protocol::candidates_key(keys());
  protocol::inspect(command, features, eval, keys(), mark_key, candidates_key);
  send(command);
}

Operation::Step Inspect::on_answer(const Reply &reply) {
  if (const auto refusal = decode(reply, info)) return refused(refusal);
  const int64_t server_ms = info.server_ms;
  // A semaphore without holders may have a cap, and waiters because of it. A listing, which shows
  // only held locks, does not look for these.
  const bool is_free = info.type == "none" && is_inspection();
  const bool may_be_semaphore =
      format() == protocol::kFormats[0] && (info.has_permits() || is_free);
  if (may_be_semaphore) choose_format(protocol::Format::kPermits);
  if (may_be_semaphore || (info.type == "hash" && info.value.empty() && choose_next_format())) {
    auto marks = std::move(info.marks);  // of the first format alone
    if (info.waiter_count > 0) std::swap(earlier_, info);
    if (!marks.empty()) earlier_.marks = std::move(marks);
    info = {};
    return {Next::kAgain, {}, server_ms};
  }
  if (info.waiter_count == 0) {
    // Each format has a queue of its own: some may wait in one while another holds.
    info.waiter_count = earlier_.waiter_count;
    info.waiters = std::move(earlier_.waiters);
  }
  if (info.marks.empty()) info.marks = std::move(earlier_.marks);
  return {Next::kNames, {}, server_ms};
}

std::vector<std::string> Inspect::clients() const {
  std::vector<std::string> cids;
  const auto add = [&cids](std::string_view token) {
    if (protocol::is_token(token)) cids.emplace_back(client_of(token));
  };
  if (info.who.empty()) add(info.value);
  for (const auto &holder : info.holders) add(holder.token);
  for (const auto &waiter : info.waiters) add(waiter.token);
  std::sort(cids.begin(), cids.end());
  cids.erase(std::unique(cids.begin(), cids.end()), cids.end());
  return cids;
}

void Inspect::name_client(std::string_view cid, std::string_view name_text) {
  const auto is_its = [cid](std::string_view token) {
    return protocol::is_token(token) && client_of(token) == cid;
  };
  if (info.who.empty() && is_its(info.value)) info.who = name_text;
  for (auto &holder : info.holders) {
    if (is_its(holder.token)) holder.who = name_text;
  }
  for (auto &waiter : info.waiters) {
    if (is_its(waiter.token)) waiter.who = name_text;
  }
}

}  // namespace redlatch::operate
