// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Signals of `run`. All that matter are blocked and waited for: there is no handler, so nothing can
// slip in between a look at a flag and a wait. Whatever else happens (a timer, a lost lock) is made
// a signal too, so that there is one thing to wait for. Made by the main thread before any other
// thread exists.
#pragma once

#include <csignal>
#include <string>

namespace redlatch::cli {

class Signals {
 public:
  // Blocks what ends a wait. Signals that were ignored when we started (nohup, `&` in a script)
  // stay ignored, here and in the child.
  Signals();

  // Blocks also what only matters while a child runs.
  void begin_child();

  // Lets everything through again, so that a second Ctrl-C ends what the first one could not.
  void restore() const;

  // For the child between fork and exec: mask and dispositions as they were when we started.
  void restore_in_child() const;

  struct Event {
    int signal;           // 0 = wake() was called.
    bool is_from_kernel;  // A key at the terminal: the whole foreground group has got it.
  };

  // Waits for the next signal. One thread at a time.
  [[nodiscard]] Event wait() const;

  // Makes wait() return, now or at its next call. From any thread.
  static void wake();

  // The signal that wake() sends, for timers.
  static int wake_signal();

  // Stops this process as job control does, and returns when it goes on.
  static void stop_self(int signal);

 private:
  void add(int signal);

  sigset_t watched_{};
  sigset_t original_mask_{};
  struct sigaction original_pipe_ {};
  struct sigaction original_child_ {};
};

// "SIGTERM"; "signal 40" where there is no name.
[[nodiscard]] std::string signal_name(int signal);

// Does this signal end a wait?
[[nodiscard]] bool ends_wait(int signal);

}  // namespace redlatch::cli
