// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Attempt: has the wires of a dialogue, and does what it says, event by event.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/dial_failure.h"
#include "driver/dialogue.h"
#include "wire.h"

namespace redlatch::wasm {

class Attempt final : public WireOwner {
 public:
  using Dialogue = driver::Dialogue;

  explicit Attempt(std::unique_ptr<Dialogue> dialogue) : dialogue_(std::move(dialogue)) {
    continue_dialogue();
  }

  bool is_over() const { return dialogue_->is_over(); }
  const Outcome &outcome() const { return dialogue_->outcome(); }
  // It waits no longer.
  void end(Nanos now);

  void on_time(Nanos now);
  Nanos next_due() const { return dialogue_->limit(); }

  // ---- when it is over
  template <class Kind>
  const Kind &as() const {
    return static_cast<const Kind &>(*dialogue_);
  }
  std::unique_ptr<Wire> take(Dialogue::Wire end, WireOwner &owner) {
    if (wires_[end]) wires_[end]->set_owner(owner);
    return std::move(wires_[end]);
  }
  Replies take_pushes() { return std::move(pushes_); }

 private:
  void on_dialled(const Wire &wire, Nanos now) override;
  void on_dial_failed(const Wire &wire, const DialFailure &seen, Nanos now) override;
  void on_replies(const Wire &wire, Replies replies, Nanos now) override;
  void on_closed(const Wire &wire, Nanos now) override;
  // Whether it awaits the result of this dial.
  bool dials(const Wire &wire) const;
  Dialogue::Send sender();
  void continue_dialogue();

  std::unique_ptr<Dialogue> dialogue_;
  std::array<std::unique_ptr<Wire>, Dialogue::kWireCount> wires_;
  Replies pushes_;
  std::string out_;
};

}  // namespace redlatch::wasm
