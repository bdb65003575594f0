// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Signals of `run`. All relevant signals are blocked and waited for: there is no handler, so
// nothing can slip in between the check of a flag and a wait. Other events (a timer, a lost lock)
// become signals, too, so that there is one thing to wait for. Made by the main thread before any
// other thread exists.
#pragma once

#include <csignal>
#include <string>

namespace redlatch::cli {

class Signals {
 public:
  // Blocks the signals that end a wait. Signals that were ignored when we started (nohup, `&` in a
  // script) stay ignored, here and in the child.
  Signals();

  // Also blocks the signals that only matter while a child runs.
  void begin_child();
  // Ends begin_child(): the child is gone.
  void end_child();

  // Unblocks all but the signal of wake(), so that a second Ctrl-C ends the process if the first
  // one could not.
  void restore() const;

  // For the child between fork and exec: mask and dispositions as they were when we started.
  void restore_in_child() const;

  struct Event {
    int signal;           // 0 = wake() was called.
    bool is_from_kernel;  // From a key at the terminal: the whole foreground group has received it.
  };

  // Waits for the next signal. One thread at a time.
  [[nodiscard]] Event wait() const;

  // Makes wait() return, now or at its next call. From any thread.
  static void wake();

  // The signal that wake() sends, for timers.
  static int wake_signal();

  // Stops this process as job control does, and returns when it is continued.
  static void stop_self(int signal);

 private:
  void add(int signal);

  sigset_t watched_{};
  sigset_t original_mask_{};
  sigset_t waiting_mask_{};  // Without a child.
  sigset_t watched_in_wait_{};
  struct sigaction original_pipe_ {};
  struct sigaction original_child_ {};
};

// While one exists, this thread has all signals blocked, and so have the threads that it starts:
// signals are for the main thread, which waits for them.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked();
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;
  ~AllSignalsBlocked();

 private:
  sigset_t before_{};
};

// "SIGTERM"; "signal 40" where there is no name.
[[nodiscard]] std::string signal_name(int signal);

// Does this signal end a wait?
[[nodiscard]] bool ends_wait(int signal);

}  // namespace redlatch::cli
