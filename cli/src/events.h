// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The events of a `run` as JSON Lines for --status-fd.
#pragma once

#include <string>

#include "json.h"

namespace redlatch::cli {

class Events {
 public:
  // -1 = no reader. The child does not inherit it.
  Events(int fd, std::string lock);

  // The members that every event has. send() takes it with those of its own.
  [[nodiscard]] JsonObject make(const char* event) const;
  void send(const JsonObject& event) const;

 private:
  int fd_;
  std::string lock_;
};

}  // namespace redlatch::cli
