// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "log.h"

#include <sys/select.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "exit_code.h"
#include "handles.h"
#include "redlatch/redlatch.h"
#include "text.h"

namespace redlatch::cli {
namespace {

constexpr suseconds_t kPatienceUs = 100'000;

// Returns 0 or an errno. One call for each message where the kernel permits, so that lines of
// several processes do not mix.
int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t size = write(fd, text.data(), text.size());
    if (size >= 0) {
      text.remove_prefix(static_cast<std::size_t>(size));
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

std::string take_library_line() { return read_text(rl_log_next); }

}  // namespace

void Log::print(int verbosity, std::string_view text) const {
  if (verbosity > verbosity_) return;
  std::string lines = "redlatch: ";
  lines += text;
  lines += '\n';
  write_in_time(STDERR_FILENO, lines);
}

void Log::say_library_lines() const {
  std::string line;
  while (!(line = take_library_line()).empty()) {
    const std::string_view text = line;
    constexpr std::string_view kWarning = "warning ";
    constexpr std::string_view kInfo = "info ";
    // Its errors are lost leases. Of these we tell ourselves, with what was done about it.
    if (text.starts_with(kWarning)) say(escaped(text.substr(kWarning.size())));
    if (text.starts_with(kInfo)) detail(escaped(text.substr(kInfo.size())));
  }
}

void drop_library_lines() {
  while (!take_library_line().empty()) {
  }
}

void write_in_time(int fd, std::string_view text) {
  // A reader that is stuck must not hold up a child that has to be stopped in time: the text is
  // dropped then. There is nobody left to tell if that happens.
  fd_set fds;
  FD_ZERO(&fds);
  FD_SET(fd, &fds);
  timeval patience = {0, kPatienceUs};
  if (select(fd + 1, nullptr, &fds, nullptr, &patience) == 1) (void)write_all(fd, text);
}

void write_output(std::string_view text) {
  const int error = write_all(STDOUT_FILENO, text);
  if (error == 0 || error == EPIPE) return;
  throw Failure{kExitSoftware, std::string("cannot write to standard output: ") + strerror(error)};
}

}  // namespace redlatch::cli
