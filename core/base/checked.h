// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Checked: owns one machine. Anyone may read it; only give(), an event, changes it. Builds with
// asserts call check() of the machine after each event. In all builds an event that its state does
// not allow returns kDefect.
#pragma once

#include <cassert>
#include <cstdio>
#include <type_traits>
#include <utility>

namespace redlatch {

template <class Machine>
class Checked {
 public:
  const Machine &get() const { return machine_; }
  const Machine *operator->() const { return &machine_; }

  // The types come from the event alone, so that arguments may be lists in braces.
  template <class Result, class... Given>
  Result give(Result (Machine::*event)(Given...), std::type_identity_t<Given>... given) {
    [[maybe_unused]] const AfterEvent check{machine_};
    return (machine_.*event)(std::forward<Given>(given)...);
  }

 private:
  struct AfterEvent {
    const Machine &machine;
#ifndef NDEBUG
    ~AfterEvent() {
      const char *broken = machine.check();
      if (broken != nullptr) std::fprintf(stderr, "check() of a machine: %s\n", broken);
      assert(broken == nullptr);
    }
#endif
  };

  Machine machine_;
};

}  // namespace redlatch
