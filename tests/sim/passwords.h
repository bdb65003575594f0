// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Passwords: that of the servers, which changes as an operator changes it: a user has the old and
// the new one for a while, and then only the new one; sometimes the new one alone at once.
// Connections that are there stay. The applications of the clients hear of it: see Wallet.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "context.h"
#include "random.h"

namespace redlatch::sim {

class Passwords {
 public:
  explicit Passwords(Context &context);

  // @return false if the last change is not over yet.
  bool rotate();
  // What the applications give. The servers may accept it a little later.
  const std::string &newest() const { return newest_; }
  bool is_accepted(std::string_view password) const;

 private:
  void accept(std::vector<std::string> passwords);

  Context &context_;
  Random random_;
  std::string newest_;
  std::vector<std::string> accepted_;
  int count_ = 0;
  bool is_rotating_ = false;
};

}  // namespace redlatch::sim
