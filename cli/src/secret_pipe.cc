// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "secret_pipe.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "handles.h"

namespace redlatch::cli {
namespace {

// As the library: without a writer and its line within this time, there is no password.
constexpr timeval kPatience{1, 0};

bool is_pipe(const FileDescriptor& file) {
  struct stat seen {};
  // select() takes no larger descriptor.
  return file.is_open() && file.get() < FD_SETSIZE && fstat(file.get(), &seen) == 0 &&
         S_ISFIFO(seen.st_mode);
}

// Byte by byte: what is behind the line is not for us. `is_late`: it has begun, and not ended.
std::string read_line(const FileDescriptor& pipe, bool& is_late) {
  std::string line;
  char c = 0;
  while (line.size() <= RL_MAX_PASSWORD_BYTES) {
    fd_set input;
    FD_ZERO(&input);
    FD_SET(pipe.get(), &input);
    timeval patience = kPatience;
    if (select(pipe.get() + 1, &input, nullptr, nullptr, &patience) != 1) {
      is_late = !line.empty();
      break;
    }
    if (read(pipe.get(), &c, 1) != 1 || c == '\n') break;
    line += c;
  }
  return line;
}

// The path of a file with the first line of the pipe `path`; of another file, or of a pipe without
// a line, `path` itself: the library has the messages for these.
std::string kept(const std::string& path) {
  // Non-blocking, because open() of a named pipe without a writer would not return.
  const FileDescriptor pipe(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!is_pipe(pipe)) return path;
  bool is_late = false;
  const std::string line = read_line(pipe, is_late);
  // A part of a password must not be sent: a server may count that as an attempt.
  if (is_late)
    throw Failure{kExitConfig, "password file " + path + ": its line did not end within a second"};
  if (line.empty()) return path;
  // Open until the process ends; children do not get it.
  const int file = memfd_create("redlatch-password", MFD_CLOEXEC);
  if (file < 0 || write(file, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    throw Failure{kExitSystem, "cannot keep the password of " + path + " in memory"};
  }
  return "/proc/self/fd/" + std::to_string(file);
}

// As the library: a descriptor, which means another one in each process.
bool is_of_descriptor(const std::string& path) {
  return path.starts_with("/dev/") || path.starts_with("/proc/");
}

}  // namespace

void keep_secrets_of_pipes(Arguments& arguments) {
  for (const char* name : {"password_file", "sentinel_password_file"}) {
    if (const auto path = arguments.options.value(name)) arguments.options.set(name, kept(*path));
  }
  const char* found = std::getenv(kPasswordFileVariable);
  if (found == nullptr || arguments.is_local) return;
  const std::string path = found;
  const std::string kept_path = kept(path);
  if (kept_path == path) return;
  setenv(kPasswordFileVariable, kept_path.c_str(), 1);
  // The rest of a pipe, behind its line, is no password. A named pipe may have another writer.
  arguments.command_password_file = is_of_descriptor(path) ? "" : path;
}

}  // namespace redlatch::cli
