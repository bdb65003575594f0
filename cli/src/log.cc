// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "log.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "exit_code.h"
#include "handles.h"
#include "line_writer.h"
#include "text.h"

namespace redlatch::cli {
namespace {

std::string take_library_line(rl_client* client) {
  return read_text(
      [&](char* buffer, std::size_t size) { return rl_client_log_next(client, buffer, size); });
}

}  // namespace

void Log::print(int verbosity, std::string_view text) const {
  if (verbosity > verbosity_) return;
  std::string lines = "redlatch: ";
  lines += text;
  lines += '\n';
  write_in_time(STDERR_FILENO, lines);
}

void Log::say_library_lines(rl_client* client) const {
  std::string line;
  while (!(line = take_library_line(client)).empty()) {
    const std::string_view text = line;
    constexpr std::string_view kWarning = "warning ";
    constexpr std::string_view kInfo = "info ";
    // Its errors are lost leases. The command reports these itself, with its reaction.
    // Those are for `doctor`: a job that runs each minute would repeat them each minute.
    constexpr std::string_view kHealth = "warning health of ";
    if (text.starts_with(kHealth)) {
      detail(escaped(text.substr(kWarning.size())));
      continue;
    }
    if (text.starts_with(kWarning)) say(escaped(text.substr(kWarning.size())));
    if (text.starts_with(kInfo)) detail(escaped(text.substr(kInfo.size())));
  }
}

void drop_library_lines(rl_client* client) {
  while (!take_library_line(client).empty()) {
  }
}

void write_in_time(int fd, std::string_view text) {
  if (write_by_thread(fd, text)) return;
  if (await_room(fd, kPatienceMs)) (void)write_all(fd, text);
}

void write_output(std::string_view text) {
  const int error = write_all(STDOUT_FILENO, text);
  if (error == 0 || error == EPIPE) return;
  throw Failure{kExitSoftware, std::string("cannot write to standard output: ") + strerror(error)};
}

}  // namespace redlatch::cli
