// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// WaitReport: shows the holder that `run` waits for: on a terminal one line that is renewed each
// second and erased in the end, with --verbose a line whenever the holder changes. Without a
// terminal and --verbose it asks the server nothing, except for the event of a wait for several
// names.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "arguments.h"
#include "awaited_lock.h"
#include "command_client.h"
#include "json.h"
#include "reports.h"

namespace redlatch::cli {

class WaitReport {
 public:
  WaitReport(const CommandClient& client, const Arguments& arguments, const Reports& reports);
  WaitReport(const WaitReport&) = delete;
  WaitReport& operator=(const WaitReport&) = delete;
  ~WaitReport() { clear(); }

  // Says that the wait has begun.
  void announce();
  // Warns, once, if the holder is a `redlatch run` around this one: the wait cannot succeed.
  void warn_of_itself();
  // Asks the server, within the time limits of a command, and shows the answer.
  void show();
  // Erases the line.
  void clear();

 private:
  struct Sight {
    std::string name;
    std::string text;    // empty: not known
    std::string holder;  // compared with that of the last line, with `name`
  };
  [[nodiscard]] Sight look();
  void add_awaited(JsonObject& event);
  [[nodiscard]] bool is_run_around_any() const;
  // The lock that is waited for, if a `redlatch run` around this one holds it; else "".
  [[nodiscard]] std::string name_held_around();

  const CommandClient& client_;
  const Arguments& arguments_;
  const std::vector<std::string> names_;
  const Log& log_;
  const Events& events_;
  const bool is_on_terminal_;
  const bool is_verbose_;
  bool is_shown_ = false;
  bool was_warned_ = false;
  int skipped_count_ = 0;  // calls of show() to leave out after one without an answer
  std::string last_holder_;
  AwaitedLock awaited_;  // not of a quorum
};

}  // namespace redlatch::cli
