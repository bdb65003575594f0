// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The command that runs under the lock: one process that leads a group of its own, or in the
// foreground stays in ours. Started and watched by the main thread: the kernel's parent-death
// signal follows the thread that forked.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "processes.h"
#include "run_options.h"
#include "signals.h"
#include "terminal.h"

namespace redlatch::cli {

class Child {
 public:
  struct Change {
    std::optional<int> exit_code;  // It has ended, with the exit code that a shell would report.
    int stop_signal = 0;           // It was stopped by this signal.
  };

  // Starts the words of `options` with `variables` added to the environment. Throws a Failure with
  // 126 or 127.
  Child(const RunOptions& options,
        const std::vector<std::pair<std::string, std::string>>& variables, const Signals& signals,
        Terminal& terminal);

  // Also the id of its group, if it has one of its own. The id stays in use until reap(), so a
  // signal cannot reach another process.
  [[nodiscard]] pid_t id() const { return pid_; }
  // "process group 5120", or "process 5120".
  [[nodiscard]] std::string words() const;

  // The changes since the last call. Also reaps orphans, in case we are process 1 or a subreaper.
  Change poll();

  // Sends `signal` to the whole group, in the foreground to the child only.
  void signal(int signal) const;

  // Kills everything that runs under the lock at once: the group, and the commands of each
  // `redlatch run` in it, which have groups of their own.
  void kill_all();

  // Forwards a signal that was sent to us. A stopped group is continued if the signal should end
  // it.
  void forward(int number) const;

  // The number of live processes in its own group. Zombies do not count: in a container whose
  // process 1 does not reap, a dead orphan remains one.
  [[nodiscard]] int living_count() const;

  // Notes the commands of each `redlatch run` inside, while these still live.
  void look_for_nested();

  // @return whether no process that kill_all() would end is alive.
  bool is_all_gone();

  // Call once, after it has ended.
  void reap();

 private:
  bool has_group_;
  pid_t pid_ = -1;
  NestedGroups nested_;
  bool is_stopped_ = false;
};

}  // namespace redlatch::cli
