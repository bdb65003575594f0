// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The controlling terminal, if there is one, and its foreground group. The child has a process
// group of its own, so it must be made the foreground group to read from the terminal and to get
// Ctrl-C, as a shell does for its jobs.
#pragma once

#include <sys/types.h>

#include "handles.h"

namespace redlatch::cli {

class Terminal {
 public:
  Terminal();

  [[nodiscard]] bool exists() const { return fd_.is_open(); }

  // True if this process is in the foreground job.
  [[nodiscard]] bool is_ours() const;

  // True if a new child gets it from the start: only if it can both read and write there. In
  // `redlatch run .. | less` the pager needs the terminal, and the child only if it reads.
  [[nodiscard]] bool is_for_child() const;

  // Makes the calling process's own group the foreground group. Between fork and exec.
  void give_from_child() const;
  void was_given() { is_given_ = true; }
  [[nodiscard]] bool is_given() const { return is_given_; }

  void give(pid_t group);

  // Does nothing if it was not given.
  void take_back();

 private:
  FileDescriptor fd_;
  bool is_given_ = false;
};

}  // namespace redlatch::cli
