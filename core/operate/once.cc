// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// OnceForget. ONCE BEGIN is about a lease: core/lock has it.
#include "operate/operation.h"

namespace redlatch::operate {

void OnceForget::ask(const Features &features, EvalMode eval, const Send &send) {
  const std::string mark_key = protocol::mark_key(keys());
  protocol::Command command;
  protocol::once_forget(command, features, eval, keys(), mark_key);
  send(command);
}

Operation::Step OnceForget::on_answer(const Reply &reply) {
  protocol::CountAnswer answer;
  if (const auto refusal = decode(reply, answer)) return refused(refusal);
  return {Next::kEnd, {}};
}

}  // namespace redlatch::operate
