// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Stats and SetCap: the numbers of a semaphore, and its cap.
#include "operate/operation.h"

namespace redlatch::operate {

void Stats::ask(const Features &features, EvalMode eval, const Send &send) {
  protocol::Command command;
  protocol::stats(command, features, eval, keys());
  send(command);
}

Operation::Step Stats::on_answer(const Reply &reply) {
  if (const auto refusal = protocol::decode_stats(reply, info)) return refused(refusal);
  return {Next::kEnd, {}, info.server_ms};
}

void SetCap::ask(const Features &features, EvalMode eval, const Send &send) {
  protocol::Command command;
  protocol::set_cap(command, features, eval, keys(), cap, for_ms);
  send(command);
}

Operation::Step SetCap::on_answer(const Reply &reply) {
  protocol::CountAnswer answer;
  if (const auto refusal = decode(reply, answer)) return refused(refusal);
  return {Next::kEnd, {}, answer.server_ms, answer.has_more};
}

}  // namespace redlatch::operate
