// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Elections: the rules for ids of candidates, and for observers. Written from the text of the
// protocol: it knows the arguments and answers of the scripts, and the results of callers. That at
// most one leads is a rule of locks.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "operate/operation.h"
#include "protocol/scripts.h"
#include "value.h"
#include "verdict.h"

namespace redlatch::sim {

class Elections {
 public:
  explicit Elections(Verdict &verdict) : verdict_(verdict) {}

  // The holder of a lock, as the server has it.
  struct Holder {
    std::string_view token;
    int64_t fence = 0;  // the last that was granted
  };
  // A script was carried out. `key_count`: of its keys, without the one that never exists.
  void after(protocol::Script script, std::string_view lock, size_t key_count, Argv args,
             const Value &reply, const Holder &holder);
  // The server has lost its data.
  void forget() { ids_.clear(); }
  // A caller has read who leads.
  void observed(std::string_view lock, const operate::Leader &answer);

 private:
  void check_shown(std::string_view lock, const Value &reply, const Holder &holder);

  Verdict &verdict_;
  std::map<std::string, std::string, std::less<>> ids_;  // by token, of candidates
  // By lock and fence: the id.
  std::map<std::string, std::map<int64_t, std::string>, std::less<>> terms_;
};

}  // namespace redlatch::sim
