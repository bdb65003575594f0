// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// GetValue: the value of a flight.
#include "operate/operation.h"

namespace redlatch::operate {

void GetValue::ask(const Features &, EvalMode, const Send &send) {
  const std::string value_key = protocol::value_key(keys());
  protocol::Command command;
  protocol::get_value(command, value_key);
  send(command);
}

Operation::Step GetValue::on_answer(const Reply &reply) {
  std::optional<protocol::FlightValue> answer;
  if (const auto refusal = decode(reply, answer)) {
    auto step = refused(refusal);
    // It may pass, as an outage.
    if (refusal.kind == protocol::Refusal::Kind::kTransient)
      step.outcome.status = Status::kUnavailable;
    return step;
  }
  if (answer) value = std::make_shared<const protocol::FlightValue>(std::move(*answer));
  return {Next::kEnd, {}};
}

}  // namespace redlatch::operate
