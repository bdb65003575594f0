// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// All processes as /proc shows them, and the groups that run under a lock of ours.
#pragma once

#include <sys/types.h>

#include <map>

namespace redlatch::cli {

struct Process {
  pid_t parent;
  pid_t group;
  pid_t session;
};

using Processes = std::map<pid_t, Process>;

// The live processes, without zombies. Empty without /proc.
[[nodiscard]] Processes living_processes();

// The groups of commands of `redlatch run` inside a command of ours, at any depth. A signal to our
// command's group does not reach them; the inner `redlatch run` forwards every signal except
// SIGKILL.
class NestedGroups {
 public:
  // Finds new ones below the process `root`, and below its group if it leads one; forgets those
  // that are gone.
  void update(const Processes& processes, pid_t root, bool is_group);

  // By the number of the group its session: a number that was used again would have another.
  [[nodiscard]] const std::map<pid_t, pid_t>& all() const { return groups_; }

 private:
  std::map<pid_t, pid_t> groups_;
};

}  // namespace redlatch::cli
