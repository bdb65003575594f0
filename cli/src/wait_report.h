// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// What `run` waits for, for people: on a terminal one line that is renewed each second and erased
// in the end; with --verbose a line whenever the holder changes. It asks the server only if there
// is a reader.
#pragma once

#include <cstdint>
#include <string>

#include "arguments.h"
#include "log.h"
#include "session.h"

namespace redlatch::cli {

class WaitReport {
 public:
  WaitReport(const Session& session, const Arguments& arguments, const Log& log);
  WaitReport(const WaitReport&) = delete;
  WaitReport& operator=(const WaitReport&) = delete;
  ~WaitReport() { clear(); }

  // If the holder is the `redlatch run` that this one runs under, it waits for its own end.
  void warn_of_itself() const;
  // Asks the server, for at most its time limits, and shows the answer.
  void show();
  // Erases the line.
  void clear();

 private:
  struct Sight {
    std::string text;    // empty: nothing is known
    std::string holder;  // what is compared
  };
  [[nodiscard]] Sight look() const;

  const Session& session_;
  const Arguments& arguments_;
  const Log& log_;
  const bool is_on_terminal_;
  const bool is_verbose_;
  bool is_shown_ = false;
  int skipped_count_ = 0;  // looks that are left out after one in vain
  std::string last_holder_;
};

}  // namespace redlatch::cli
