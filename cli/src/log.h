// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The command's own messages: lines on stderr that begin with "redlatch: ". Standard output belongs
// to the child, or to the answer of a query.
#pragma once

#include <string_view>

#include "redlatch/redlatch.h"

namespace redlatch::cli {

class Log {
 public:
  // 0 unless there are --quiet, which count as -1 each, or --verbose, which count as 1.
  void set_verbosity(int verbosity) { verbosity_ = verbosity; }

  // The call itself is wrong, or a question is asked: not printed under -qq only.
  void always(std::string_view text) const { print(-1, text); }
  // Not printed under --quiet.
  void say(std::string_view text) const { print(0, text); }
  // Printed under --verbose only.
  void detail(std::string_view text) const { print(1, text); }
  // Printed under -vv only.
  void trace(std::string_view text) const { print(2, text); }

  // The lines of `client` about background events, such as slower waiting.
  void say_library_lines(rl_client* client) const;

 private:
  void print(int verbosity, std::string_view text) const;

  int verbosity_ = 0;
};

// Drops the lines of `client`: the command has reported the event itself.
void drop_library_lines(rl_client* client);

// Writes `text`, whole lines, to `fd`, or drops it if the reader is stuck. After
// start_line_writer() it never waits; before that, only the answer of the command could be late.
void write_in_time(int fd, std::string_view text);

// Writes an answer to standard output, all of it. A reader that closed early is no error; any
// other reason throws a Failure.
void write_output(std::string_view text);

}  // namespace redlatch::cli
