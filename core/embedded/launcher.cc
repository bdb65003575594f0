// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "embedded/launcher.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <array>
#include <cassert>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <memory>

#include "base/text.h"
#include "embedded/server_dir.h"
#include "host/poll.h"
#include "net/epoll_set.h"

// Not every unistd.h has it. It is the system's, so that it is visible where ours is hidden.
// NOLINTNEXTLINE(readability-redundant-declaration)
extern char **environ __attribute__((visibility("default")));

namespace redlatch::embedded {

namespace {

constexpr std::string_view kSupervisorName = "redlatch-embedded";

// Relative to the folder of the library: beside it (a Python package), below it, in the installed
// tree with `lib` or `lib/<machine>`, in a build tree.
constexpr std::array<std::string_view, 5> kPlaces = {"", "redlatch/", "../libexec/redlatch/",
                                                     "../../libexec/redlatch/", "../embedded/"};

std::string real_path(const char *path) {
  const std::unique_ptr<char, decltype(&free)> real(realpath(path, nullptr), &free);
  return real ? real.get() : "";
}

// The file that this code was loaded from. For the main program dladdr() gives argv[0], which need
// not be a path.
std::string own_file() {
  Dl_info info{};
  const void *here = reinterpret_cast<const void *>(&find_supervisor);
  if (dladdr(here, &info) != 0 && info.dli_fname != nullptr) {
    const std::string_view name = info.dli_fname;
    if (name.find('/') != std::string_view::npos) {
      if (auto path = real_path(info.dli_fname); !path.empty()) return path;
    }
  }
  return real_path("/proc/self/exe");
}

// Refuses a program that another user may have put there, because it would run with our rights.
bool is_trusted(const std::string &path, uid_t owner) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return false;
  const bool is_ours = info.st_uid == 0 || info.st_uid == geteuid() || info.st_uid == owner;
  return is_ours && (info.st_mode & S_IWOTH) == 0 && access(path.c_str(), X_OK) == 0;
}

// Above the numbers that the program expects, so that adddup2 does not overwrite it.
Descriptor duplicate(const Descriptor &from) {
  return Descriptor(fcntl(from.get(), F_DUPFD_CLOEXEC, 10));
}

struct Pipe {
  bool open() {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return false;
    reading = Descriptor(ends[0]);
    const Descriptor low(ends[1]);
    writing = duplicate(low);
    return writing.is_open();
  }
  Descriptor reading;
  Descriptor writing;
};

class SpawnAttributes {
 public:
  SpawnAttributes() {
    sigset_t all;
    sigset_t none;
    sigfillset(&all);
    sigemptyset(&none);
    is_good_ = posix_spawnattr_init(&attributes_) == 0 &&
               posix_spawn_file_actions_init(&actions_) == 0 &&
               posix_spawnattr_setsigdefault(&attributes_, &all) == 0 &&
               posix_spawnattr_setsigmask(&attributes_, &none) == 0 &&
               posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF |
                                                          POSIX_SPAWN_SETSIGMASK) == 0;
    for (int fd = 0; fd <= 2; fd++) {
      is_good_ =
          is_good_ && posix_spawn_file_actions_addopen(&actions_, fd, "/dev/null", O_RDWR, 0) == 0;
    }
  }
  ~SpawnAttributes() {
    posix_spawnattr_destroy(&attributes_);
    posix_spawn_file_actions_destroy(&actions_);
  }
  SpawnAttributes(const SpawnAttributes &) = delete;
  SpawnAttributes &operator=(const SpawnAttributes &) = delete;

  void pass(const Descriptor &from, int as) {
    is_good_ = is_good_ && from.is_open() &&
               posix_spawn_file_actions_adddup2(&actions_, from.get(), as) == 0;
  }

  // @return 0, or errno.
  int spawn(const char *path, char *const *argv, pid_t &pid) {
    return is_good_ ? posix_spawn(&pid, path, &actions_, &attributes_, argv, environ) : ENOMEM;
  }

 private:
  posix_spawnattr_t attributes_{};
  posix_spawn_file_actions_t actions_{};
  bool is_good_ = false;
};

Outcome decode_report(const std::string &line, const Start &start) {
  const size_t space = line.find(' ');
  const size_t end = line.find('\n');
  int32_t status = 0;
  if (end == std::string::npos || space == std::string::npos ||
      !parse_number(std::string_view(line).substr(0, space), status)) {
    return failure(Status::kUnavailable, "the embedded server's supervisor " +
                                             quoted(start.supervisor, PATH_MAX) +
                                             " ended without a report; see " + start.folder + "/" +
                                             std::string(kLogFile));
  }
  return Outcome{static_cast<Status>(status), line.substr(space + 1, end - space - 1)};
}

Outcome await_report(const Descriptor &report, const Start &start, Nanos limit, int wake_fd) {
  std::string line;
  while (line.size() < kMaxReport && line.find('\n') == std::string::npos) {
    if (!await_input(report.get(), limit, wake_fd)) {
      return failure(Status::kUnavailable, "the embedded server in " + start.folder +
                                               " did not start within the time limit; see " +
                                               start.folder + "/" + std::string(kLogFile));
    }
    std::array<char, 512> buffer{};
    const ssize_t n = read(report.get(), buffer.data(), buffer.size());
    if (n > 0) line.append(buffer.data(), static_cast<size_t>(n));
    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) break;
  }
  return decode_report(line, start);
}

// Wait for the first process of the program, which only starts the second one and ends, so that the
// second is no child of this process. The pipe shows its end, so that waitpid() does not block. If
// it hangs, it is killed. A host that reaps all children may have reaped it before.
void reap(pid_t pid, const Descriptor &alive, Nanos limit, int wake_fd) {
  assert(pid > 0 && "others would be killed, or waited for");
  siginfo_t child{};
  const bool stands_still =
      !await_input(alive.get(), limit, wake_fd) &&
      waitid(P_PID, static_cast<id_t>(pid), &child, WEXITED | WNOHANG | WNOWAIT) == 0 &&
      child.si_pid == 0;
  if (stands_still) kill(pid, SIGKILL);
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace

std::string own_folder() {
  std::string path = own_file();
  path.erase(path.empty() ? 0 : path.rfind('/'));
  return path;
}

std::string find_supervisor() {
  const std::string file = own_file();
  struct stat info {};
  const uid_t owner = !file.empty() && stat(file.c_str(), &info) == 0 ? info.st_uid : 0;
  for (const std::string_view place : kPlaces) {
    if (file.empty()) break;
    std::string path = file.substr(0, file.rfind('/') + 1);
    path.append(place).append(kSupervisorName);
    if (is_trusted(path, owner)) return path;
  }
  const std::string installed = REDLATCH_SUPERVISOR;
  return is_trusted(installed, owner) ? installed : "";
}

Outcome start_supervisor(const Start &start, Nanos limit, int wake_fd) {
  assert(start.lock != nullptr && start.lock->is_open());
  assert(start.supervisor.starts_with('/') && start.folder.starts_with('/'));
  Pipe report;
  Pipe alive;
  const Descriptor lock = duplicate(*start.lock);
  if (!report.open() || !alive.open() || !lock.is_open()) {
    unlock(*start.lock);
    return failure(Status::kUnavailable, "cannot create pipes for the embedded server");
  }
  SpawnAttributes attributes;
  attributes.pass(report.writing, kReportFd);
  attributes.pass(alive.writing, kAliveFd);
  attributes.pass(lock, kStartFd);
  const std::string near = own_folder();
  std::array<const char *, 6> words = {start.supervisor.c_str(), "start",      start.folder.c_str(),
                                       start.server.c_str(),     near.c_str(), nullptr};
  pid_t pid = 0;
  // Its arguments are constant: the prototype is older than const.
  const int error =
      attributes.spawn(start.supervisor.c_str(), const_cast<char *const *>(words.data()), pid);
  if (error != 0) {
    unlock(*start.lock);
    const bool may_pass = error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE;
    return failure(may_pass ? Status::kUnavailable : Status::kUnsupported,
                   "cannot start " + quoted(start.supervisor, PATH_MAX) + ": " + reason_of(error));
  }
  report.writing.close();
  alive.writing.close();
  auto outcome = await_report(report.reading, start, limit, wake_fd);
  reap(pid, alive.reading, limit, wake_fd);
  return outcome;
}

}  // namespace redlatch::embedded
