// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "log.h"

#include <sys/select.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "exit_code.h"

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

}  // namespace

void Log::always(std::string_view text) const {
  std::string lines = "redlatch: ";
  lines += text;
  lines += '\n';
  // A reader that is stuck must not hold up a child that has to be stopped in time: the line is
  // dropped then. There is nobody left to tell if that happens.
  fd_set fds;
  FD_ZERO(&fds);
  FD_SET(STDERR_FILENO, &fds);
  timeval patience = {0, kPatienceUs};
  if (select(STDERR_FILENO + 1, nullptr, &fds, nullptr, &patience) == 1) {
    (void)write_all(STDERR_FILENO, lines);
  }
}

void Log::say(std::string_view text) const {
  if (!is_quiet_) always(text);
}

void Log::detail(std::string_view text) const {
  if (is_verbose_ && !is_quiet_) always(text);
}

void write_output(std::string_view text) {
  const int error = write_all(STDOUT_FILENO, text);
  if (error == 0 || error == EPIPE) return;
  throw Failure{kExitSoftware, std::string("cannot write to standard output: ") + strerror(error)};
}

}  // namespace redlatch::cli
