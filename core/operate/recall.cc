// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include <algorithm>
#include <new>

#include "operate/operation.h"
#include "operate/recalls.h"

namespace redlatch::operate {

void Recall::ask(const Features &features, EvalMode eval, const Send &send) {
  protocol::Command command;
  protocol::recall(command, features, eval, keys(), reason);
  send(command);
}

Operation::Step Recall::on_answer(const Reply &reply) {
  protocol::CountAnswer answer;
  if (const auto refusal = decode(reply, answer)) return refused(refusal);
  if (answer.result < 0 && choose_next_format()) return {Next::kAgain, {}, answer.server_ms};
  heard = std::max<int64_t>(answer.result, 0);
  return {Next::kEnd, {}, answer.server_ms};
}

bool Recalls::take_recent(const std::string &name, Nanos now, int64_t &heard) {
  std::erase_if(answers_, [now](const auto &entry) { return now - entry.second.at >= kInterval; });
  const auto found = answers_.find(name);
  if (found == answers_.end()) return false;
  heard = found->second.heard;
  return true;
}

void Recalls::note(const std::string &name, Nanos answered_at, int64_t heard) noexcept {
  try {
    answers_[name] = {answered_at, heard};
  } catch (const std::bad_alloc &) {
    return;
  }
  if (answers_.size() <= kMostNames) return;
  answers_.erase(std::min_element(answers_.begin(), answers_.end(), [](auto &one, auto &other) {
    return one.second.at < other.second.at;
  }));
}

}  // namespace redlatch::operate
