// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include <algorithm>

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
  std::erase_if(sent_, [now](const auto &entry) { return now - entry.second.at >= kInterval; });
  const auto found = sent_.find(name);
  if (found == sent_.end()) return false;
  heard = found->second.heard;
  return true;
}

void Recalls::note(const std::string &name, Nanos sent_at, int64_t heard) {
  if (sent_.size() >= kMostNames) sent_.erase(sent_.begin());
  sent_[name] = {sent_at, heard};
}

}  // namespace redlatch::operate
