// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "workers.h"

#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <new>
#include <utility>

namespace redlatch::sim {

std::optional<Child> start_child(const std::function<void(FILE *)> &work) {
  int ends[2];
  const pid_t parent = getpid();
  fflush(stdout);
  if (pipe(ends) != 0) return std::nullopt;
  const pid_t pid = fork();
  if (pid < 0) return std::nullopt;
  if (pid == 0) {
    // Ends with its parent: otherwise it would work to the end, and no process would read it.
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    if (getppid() != parent) _exit(1);
    close(ends[0]);
    FILE *out = fdopen(ends[1], "w");
    work(out);
    fclose(out);
    fflush(stdout);
    _exit(0);
  }
  close(ends[1]);
  return Child{pid, fdopen(ends[0], "r")};
}

std::vector<std::string> run_workers(int jobs, const std::function<void(Begun &, FILE *)> &work,
                                     const std::function<bool(FILE *)> &read) {
  std::vector<std::string> troubles;
  std::vector<Child> workers;
  void *shared =
      mmap(nullptr, sizeof(Begun), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return {"no memory that the processes of this run could share"};
  auto &begun = *new (shared) Begun(0);
  for (int job = 0; job < jobs; job++) {
    const auto worker = start_child([&](FILE *out) { work(begun, out); });
    if (!worker) {
      troubles.emplace_back("a process of this run could not be started");
      break;
    }
    workers.push_back(*worker);
  }
  for (const auto &[pid, in] : workers) {
    if (!read(in)) troubles.emplace_back("a process of this run crashed");
    fclose(in);
    waitpid(pid, nullptr, 0);
  }
  munmap(shared, sizeof(Begun));
  return troubles;
}

}  // namespace redlatch::sim
