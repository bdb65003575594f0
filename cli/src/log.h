// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The command's own messages: lines on stderr that begin with "redlatch: ". Standard output belongs
// to the child, or to the answer of a query.
#pragma once

#include <string_view>

namespace redlatch::cli {

class Log {
 public:
  void set_quiet(bool is_quiet) { is_quiet_ = is_quiet; }
  void set_verbose(bool is_verbose) { is_verbose_ = is_verbose; }

  // Printed whatever the flags: the call itself is wrong, or a question was asked.
  void always(std::string_view text) const;
  // Not printed under --quiet.
  void say(std::string_view text) const;
  // Printed under --verbose only.
  void detail(std::string_view text) const;

 private:
  bool is_quiet_ = false;
  bool is_verbose_ = false;
};

// Writes an answer to standard output, all of it. A reader that went away early is no error; any
// other reason throws a Failure.
void write_output(std::string_view text);

}  // namespace redlatch::cli
