// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// DialogueHost: has the wires of a dialogue, and does what it says, event by event.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "driver/dialogue.h"
#include "wire.h"

namespace redlatch::wasm {

class DialogueHost final : public WireOwner {
 public:
  using Dialogue = driver::Dialogue;

  // `dialogue`: a fresh one, which outlives the events of its wires.
  explicit DialogueHost(Dialogue &dialogue) : dialogue_(dialogue) { proceed(); }

  bool is_over() const { return dialogue_.is_over(); }
  // Ends the dialogue.
  void stop(Nanos now);
  void on_time(Nanos now);
  Nanos next_due() const { return dialogue_.limit(); }

  // ---- once it is over
  std::unique_ptr<Wire> take(Dialogue::Wire end, WireOwner &owner) {
    if (wires_[end]) wires_[end]->set_owner(owner);
    return std::move(wires_[end]);
  }
  Replies take_pushes() { return std::move(pushes_); }

 private:
  void on_dialled(const Wire &wire, Nanos now) override;
  void on_replies(const Wire &wire, Replies replies, Nanos now) override;
  void on_closed(const Wire &wire, std::string_view why, Nanos now) override;
  Dialogue::Send sender();
  void proceed();

  Dialogue &dialogue_;
  std::array<std::unique_ptr<Wire>, Dialogue::kWireCount> wires_;
  Replies pushes_;
  std::string out_;
};

}  // namespace redlatch::wasm
