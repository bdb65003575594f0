// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "config/secret_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/text.h"
#include "config/url.h"
#include "net/epoll_set.h"

namespace redlatch::config {

namespace {

constexpr Nanos kPatience = 1000 * kMs;
constexpr const char *kNothing = "nothing came within a second";

std::string reason_of(int error) { return std::generic_category().message(error); }

bool is_pipe(int fd) {
  struct stat seen {};
  return fstat(fd, &seen) == 0 && S_ISFIFO(seen.st_mode);
}

// Read until the first line is complete. @return empty, or why it failed.
std::string read_line(int fd, std::string &line) {
  const Nanos limit = boot_now() + kPatience;
  // Before it has had a writer, a pipe reads as if it were at its end.
  if (is_pipe(fd) && !net::await_input(fd, limit, -1)) return kNothing;
  std::array<char, 4096> buffer{};
  while (line.find('\n') == std::string::npos && line.size() <= kMaxPasswordBytes) {
    const ssize_t n = read(fd, buffer.data(), buffer.size());
    if (n > 0) {
      line.append(buffer.data(), static_cast<size_t>(n));
    } else if (n == 0) {
      break;
    } else if (errno == EAGAIN) {
      if (!net::await_input(fd, limit, -1)) return kNothing;
    } else if (errno != EINTR) {
      return reason_of(errno);
    }
  }
  explicit_bzero(buffer.data(), buffer.size());
  line.resize(std::min(line.find('\n'), line.size()));
  if (line.ends_with('\r')) line.pop_back();
  if (line.size() > kMaxPasswordBytes) return "its first line is over 64 KiB";
  return line.empty() ? "its first line is empty" : "";
}

}  // namespace

Outcome read_secret(const std::string &path, std::string &secret, PipeSecrets &of_pipes) {
  if (const auto known = of_pipes.find(path); known != of_pipes.end()) {
    secret = known->second;
    return {};
  }
  // Non-blocking, because open() of a named pipe without a writer would not return.
  const Descriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  std::string line;
  const std::string reason = file.get() < 0 ? reason_of(errno) : read_line(file.get(), line);
  if (!reason.empty()) {
    // Text that does not look like a path may be the password itself.
    const std::string shown = is_shown_path(path) ? " " + quoted(path, 256) : "";
    return failure(Status::kInvalid, "cannot read the password file" + shown + ": " + reason);
  }
  if (is_pipe(file.get())) of_pipes.emplace(path, line);
  secret = std::move(line);
  return {};
}

}  // namespace redlatch::config
