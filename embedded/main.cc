// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// redlatch-embedded: runs the embedded server of one folder. Started by the library.
//
// The first process finds the server's binary, starts the second, and ends at once, so that the
// second is no child of the host's. The second is the supervisor; it is executed anew, because the
// environment of a process can be read for as long as it lives, and a host's may hold secrets.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "embedded/launcher.h"
#include "embedded/server_dir.h"
#include "find_server.h"
#include "supervisor.h"

namespace redlatch::supervisor {
namespace {

using embedded::kAliveFd;
using embedded::kReportFd;
using embedded::kStartFd;

constexpr int kFirstForeignFd = std::max({kReportFd, kAliveFd, kStartFd}) + 1;
// Variables that a server may need; the host's other variables are not passed.
constexpr std::array<const char *, 4> kPassedOn = {"PATH", "LD_LIBRARY_PATH", "TZ", "LANG"};

void report(const Outcome &outcome) {
  std::string line = std::to_string(static_cast<int32_t>(outcome.status)) + " " + outcome.message;
  std::replace(line.begin(), line.end(), '\n', ' ');
  line.resize(std::min(line.size(), embedded::kMaxReport - 1));
  line += '\n';
  // The client that started it may have ended.
  [[maybe_unused]] const ssize_t written = write(kReportFd, line.data(), line.size());
  // From here on other clients may connect.
  embedded::unlock(Descriptor(kStartFd));
}

// The host may have opened files without O_CLOEXEC: an inherited one would keep a port or a pipe in
// use.
void close_foreign() {
  const long most = sysconf(_SC_OPEN_MAX);
#ifdef __GLIBC__
#if __GLIBC_PREREQ(2, 34)
  closefrom(kFirstForeignFd);
  return;
#endif
#endif
  for (int fd = kFirstForeignFd; fd < std::min<long>(most, 65'536); fd++) close(fd);
}

[[noreturn]] void execute_supervisor(const char *folder, const std::string &binary) {
  std::vector<std::string> kept;
  for (const char *name : kPassedOn) {
    if (const char *value = getenv(name)) kept.push_back(std::string(name) + "=" + value);
  }
  std::vector<char *> environment;
  environment.reserve(kept.size() + 1);
  for (std::string &entry : kept) environment.push_back(entry.data());
  environment.push_back(nullptr);
  const std::array<const char *, 5> words = {"redlatch-embedded", "serve", folder, binary.c_str(),
                                             nullptr};
  execve("/proc/self/exe", const_cast<char *const *>(words.data()), environment.data());
  report(failure(Status::kUnavailable, "cannot start the supervisor: " + reason_of(errno)));
  _exit(EXIT_FAILURE);
}

int start(const char *folder, const char *server, const char *library_folder) {
  close_foreign();
  fcntl(kAliveFd, F_SETFD, FD_CLOEXEC);
  std::string binary;
  auto outcome = find_server(server, library_folder, binary);
  if (outcome.ok()) {
    const pid_t pid = fork();
    if (pid == 0) execute_supervisor(folder, binary);
    if (pid > 0) return EXIT_SUCCESS;
    outcome = failure(Status::kUnavailable, "cannot start the supervisor");
  }
  report(outcome);
  return EXIT_FAILURE;
}

int serve(const char *folder, const char *binary) {
  fcntl(kReportFd, F_SETFD, FD_CLOEXEC);
  fcntl(kStartFd, F_SETFD, FD_CLOEXEC);
  prctl(PR_SET_NAME, "redlatch-embed");  // it was executed by a path that says nothing
  umask(0077);
  if (chdir("/") != 0) return EXIT_FAILURE;
  Supervisor supervisor(folder, binary);
  const auto outcome = supervisor.start();
  report(outcome);
  close(kReportFd);
  if (!outcome.ok()) return EXIT_FAILURE;
  try {
    supervisor.run();
  } catch (const std::exception &) {
    return EXIT_FAILURE;  // no report: its descriptor is closed
  }
  return EXIT_SUCCESS;
}

bool is_started_by_library() {
  const std::array<int, 2> needed = {kReportFd, kStartFd};
  return std::all_of(needed.begin(), needed.end(), [](int fd) { return fcntl(fd, F_GETFD) >= 0; });
}

int guarded_main(const std::vector<const char *> &words) {
  // The client that started the server may have ended before the report: other clients need it,
  // too.
  std::signal(SIGPIPE, SIG_IGN);
  const std::string_view what = words.empty() ? "" : words[0];
  try {
    if (what == "start" && words.size() == 4 && is_started_by_library()) {
      return start(words[1], words[2], words[3]);
    }
    if (what == "serve" && words.size() == 3 && is_started_by_library()) {
      return serve(words[1], words[2]);
    }
  } catch (const std::exception &error) {
    report(failure(Status::kUnavailable, error.what()));
    return EXIT_FAILURE;
  }
  fputs("redlatch-embedded: libredlatch starts this for embedded:// URLs; try `redlatch server`\n",
        stderr);
  return 64;
}

}  // namespace
}  // namespace redlatch::supervisor

int main(int argc, char **argv) {
  return redlatch::supervisor::guarded_main({argv + (argc > 0 ? 1 : 0), argv + argc});
}
