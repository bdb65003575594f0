// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "operate/operation.h"
#include "operate/words.h"

namespace redlatch::operate {

void Force::ask(const Features &features, EvalMode eval, const Send &send) {
  protocol::Command command;
  protocol::force_release(command, features, eval, keys(), token);
  send(command);
}

Operation::Step Force::on_answer(const Reply &reply) {
  protocol::CountAnswer answer;
  if (const auto refusal = decode(reply, answer)) return refused(refusal);
  if (answer.result == -1 && choose_next_format()) return {Next::kAgain, {}, answer.server_ms};
  Step step{Next::kEnd, {}, answer.server_ms, answer.has_more};
  if (answer.result == 1) return step;
  if (answer.result == -2) {
    step.outcome = {Status::kWrongType, protocol::wrong_type_message(name, answer.wrong_type)};
    return step;
  }
  step.outcome = {Status::kNotHeld, answer.result == 0 ? words::not_held(name)
                                    : token.empty()    ? words::not_a_lock(name)
                                                       : words::not_held_by_token(name)};
  return step;
}

}  // namespace redlatch::operate
