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
    std::optional<int> exit_code;  // It has ended, with this code as a shell would say it.
    int stop_signal = 0;           // It was stopped by this signal.
  };

  // Starts the words of `options` with `variables` added to the environment. Throws a Failure with
  // 126 or 127.
  Child(const RunOptions& options,
        const std::vector<std::pair<std::string, std::string>>& variables, const Signals& signals,
        Terminal& terminal);

  // Also that of its group, if it has one of its own. It stays taken until reap(), so a signal can
  // never reach somebody else.
  [[nodiscard]] pid_t id() const { return pid_; }
  // "process group 5120", or "process 5120".
  [[nodiscard]] std::string words() const;

  // What happened since the last call. Also reaps orphans, in case we are process 1 or a subreaper.
  Change poll();

  // Sends `signal` to the whole group, in the foreground to the child only.
  void signal(int signal) const;

  // Ends all at once that runs under the lock: the group, and the commands of each `redlatch run`
  // in it, which have groups of their own.
  void kill_all();

  // Passes on a signal that was sent to us. A stopped group goes on if it is one to end by: it
  // could not obey otherwise.
  void pass_on(int number) const;

  // How many processes of its own group are alive. Zombies do not count: in a container whose
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
