// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "elections.h"

namespace redlatch::sim {

namespace {

constexpr size_t kCandidateKeys = 6;
constexpr size_t kInfo = 7, kIds = 12;  // places in the answer of INSPECT

}  // namespace

void Elections::after(protocol::Script script, std::string_view lock, size_t key_count, Argv args,
                      const Value &reply, const Holder &holder) {
  const bool is_candidate = script == protocol::Script::kAcquire && key_count == kCandidateKeys;
  if (is_candidate && !reply.is_error()) ids_[std::string(args[0])] = args[5];
  const auto found = ids_.find(holder.token);
  if (found == ids_.end()) return;
  terms_[std::string(lock)][holder.fence] = found->second;
  if (script == protocol::Script::kInspect) check_shown(lock, reply, holder);
}

// Rule: id and term of a leader can be read from the grant on.
void Elections::check_shown(std::string_view lock, const Value &reply, const Holder &holder) {
  const bool has_ids = reply.items.size() > kIds && reply.items[kIds].kind == Value::Kind::kArray;
  if (!has_ids) return;  // the format has none
  std::string id = reply.items[kIds].items.empty() ? "" : reply.items[kIds].items[0].text;
  std::string fence = reply.items[4].text;
  const auto &info = reply.items[kInfo].items;
  for (size_t i = 0; i + 1 < info.size(); i += 2) {
    if (info[i].text == "id") id = info[i + 1].text;
    // Late copies may have granted the token another one since.
    if (info[i].text == "fence" &&
        (fence.empty() || std::stoll(fence) < std::stoll(info[i + 1].text))) {
      fence = info[i + 1].text;
    }
  }
  const std::string how = std::string(lock) + ": " + std::string(holder.token);
  if (id != ids_.find(holder.token)->second) {
    verdict_.broken("the id of a leader can be read", how + ", '" + id + "'");
  }
  if (fence.empty() || std::stoll(fence) != holder.fence) {
    verdict_.broken("the term of a leader can be read",
                    how + ", " + fence + " instead of " + std::to_string(holder.fence));
  }
}

// Rules: an observer is told of leaders that led, in the order of their terms, and each time of
// something that it did not know.
void Elections::observed(std::string_view lock, const operate::Leader &answer) {
  const auto &info = answer.info;
  const std::string how = std::string(lock) + ": '" + info.candidate + "', fence " +
                          std::to_string(info.fence) + ", position " +
                          std::to_string(info.position) + " after " + std::to_string(answer.seen);
  if (info.position / 2 < answer.seen / 2) verdict_.broken("an observer sees terms rise", how);
  if (info.position == answer.seen) verdict_.broken("an observer waits for news", how);
  if (info.candidate.empty()) return;
  if (info.position != 2 * info.fence + 1) verdict_.broken("a position tells the term", how);
  const auto terms = terms_.find(lock);
  const auto *id = terms == terms_.end() || !terms->second.contains(info.fence)
                       ? nullptr
                       : &terms->second.at(info.fence);
  if (id == nullptr || *id != info.candidate) verdict_.broken("who is shown to lead, led", how);
}

}  // namespace redlatch::sim
