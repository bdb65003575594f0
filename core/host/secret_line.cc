// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "host/secret_line.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/limits.h"
#include "base/text.h"
#include "host/clock.h"
#include "host/descriptor.h"
#include "host/poll.h"

namespace redlatch {

namespace {

constexpr Nanos kPatience = 1000 * kMs;
constexpr const char *kNothing = "nothing came within a second";

// Read until the first line is complete. @return empty, or why it failed.
std::string read_line(int fd, bool is_pipe, Password &line) {
  const Nanos limit = boot_now() + kPatience;
  // Before it has had a writer, a pipe reads as if it were at its end.
  if (is_pipe && !await_input(fd, limit, -1)) return kNothing;
  std::array<char, 4096> buffer{};
  const auto end_of = [](std::string_view text) { return std::min(text.find('\n'), text.size()); };
  while (end_of(line) == line.size() && line.size() <= kMaxPasswordBytes) {
    const ssize_t n = read(fd, buffer.data(), buffer.size());
    if (n > 0) {
      line.append({buffer.data(), static_cast<size_t>(n)});
    } else if (n == 0) {
      break;
    } else if (errno == EAGAIN) {
      if (!await_input(fd, limit, -1)) return kNothing;
    } else if (errno != EINTR) {
      return reason_of(errno);
    }
  }
  explicit_bzero(buffer.data(), buffer.size());
  line.cut(end_of(line));
  if (std::string_view(line).ends_with('\r')) line.cut(line.size() - 1);
  if (line.size() > kMaxPasswordBytes) return "its first line is over 64 KiB";
  return line.empty() ? "its first line is empty" : "";
}

}  // namespace

std::string read_secret_line(const std::string &path, LineSource source, SecretLine &line) {
  // Non-blocking, because open() of a named pipe without a writer would not return.
  const Descriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat seen {};
  if (file.get() < 0 || fstat(file.get(), &seen) != 0) return reason_of(errno);
  line.is_pipe = S_ISFIFO(seen.st_mode);
  line.is_regular =
      S_ISREG(seen.st_mode) && !path.starts_with("/dev/") && !path.starts_with("/proc/");
  if (source == LineSource::kRegular && !line.is_regular) return "it must be a regular file";
  return read_line(file.get(), line.is_pipe, line.text);
}

}  // namespace redlatch
