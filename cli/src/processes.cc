// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "processes.h"

#include <dirent.h>
#include <sys/stat.h>

#include <cctype>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <optional>
#include <string>

namespace redlatch::cli {
namespace {

// From /proc/PID/stat: "PID (NAME) STATE PARENT GROUP SESSION ..", where the name may hold any
// bytes.
std::optional<Process> living_process(const char* id) {
  std::ifstream file(std::string("/proc/") + id + "/stat");
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  const std::size_t end = line.rfind(')');
  if (end == std::string::npos) return std::nullopt;
  char state = 0;
  Process process{};
  const int count = std::sscanf(line.c_str() + end + 1, " %c %d %d %d", &state, &process.parent,
                                &process.group, &process.session);
  if (count != 4 || state == 'Z' || state == 'X') return std::nullopt;
  return process;
}

// @return whether it runs the same program as this process.
bool is_redlatch(pid_t id) {
  struct stat ours {};
  struct stat theirs {};
  return stat("/proc/self/exe", &ours) == 0 &&
         stat(("/proc/" + std::to_string(id) + "/exe").c_str(), &theirs) == 0 &&
         ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

// True if `id` was started by the `redlatch run` in process `runner`, perhaps of another build.
bool names_runner(pid_t id, pid_t runner) {
  std::ifstream file("/proc/" + std::to_string(id) + "/environ");
  const std::string variable = "REDLATCH_PID=" + std::to_string(runner);
  for (std::string entry; std::getline(file, entry, '\0');) {
    if (entry == variable) return true;
  }
  return false;
}

}  // namespace

Processes living_processes() {
  Processes processes;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc"), closedir);
  if (!folder) return processes;
  while (const dirent* entry = readdir(folder.get())) {
    if (std::isdigit(static_cast<unsigned char>(entry->d_name[0])) == 0) continue;
    if (const auto process = living_process(entry->d_name)) {
      processes.emplace(std::stoi(entry->d_name), *process);
    }
  }
  return processes;
}

void NestedGroups::update(const Processes& processes, pid_t root, bool is_group) {
  std::map<pid_t, pid_t> living;
  for (const auto& [id, process] : processes) living.emplace(process.group, process.session);
  std::erase_if(groups_, [&](const auto& known) {
    const auto found = living.find(known.first);
    return found == living.end() || found->second != known.second;
  });
  const auto is_ours = [&](pid_t id, const Process& process) {
    return id == root || (is_group && process.group == root) || groups_.contains(process.group);
  };
  // The command of a `redlatch run` leads a group in the same session. The supervisor of an
  // embedded server, which it may start as well, has a session of its own.
  const auto is_nested_command = [&](pid_t id, const Process& process) {
    if (id != process.group || is_ours(id, process)) return false;
    const auto parent = processes.find(process.parent);
    return parent != processes.end() && is_ours(parent->first, parent->second) &&
           parent->second.session == process.session &&
           (is_redlatch(parent->first) || names_runner(id, parent->first));
  };
  // Each round may find groups inside those of the round before.
  for (std::size_t count = SIZE_MAX; count != groups_.size();) {
    count = groups_.size();
    for (const auto& [id, process] : processes) {
      if (is_nested_command(id, process)) groups_.emplace(id, process.session);
    }
  }
}

}  // namespace redlatch::cli
