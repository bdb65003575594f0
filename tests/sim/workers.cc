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

std::vector<std::string> run_workers(int jobs, const std::function<void(Begun &, FILE *)> &work,
                                     const std::function<bool(FILE *)> &read) {
  std::vector<std::string> troubles;
  std::vector<std::pair<pid_t, FILE *>> workers;
  const pid_t parent = getpid();
  void *shared =
      mmap(nullptr, sizeof(Begun), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return {"no memory that the processes of this run could share"};
  auto &begun = *new (shared) Begun(0);
  fflush(stdout);
  for (int job = 0; job < jobs; job++) {
    int ends[2];
    const pid_t pid = pipe(ends) == 0 ? fork() : -1;
    if (pid < 0) {
      troubles.emplace_back("a process of this run could not be started");
      break;
    }
    if (pid == 0) {
      // Ends with its parent: otherwise it would work to the end, and no process would read it.
#ifdef __linux__
      prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
      if (getppid() != parent) _exit(1);
      close(ends[0]);
      FILE *out = fdopen(ends[1], "w");
      work(begun, out);
      fclose(out);
      _exit(0);
    }
    close(ends[1]);
    workers.emplace_back(pid, fdopen(ends[0], "r"));
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
