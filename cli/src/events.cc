// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "events.h"

#include <fcntl.h>
#include <unistd.h>

#include <utility>

#include "duration.h"
#include "log.h"

namespace redlatch::cli {

Events::Events(int fd, std::string lock) : fd_(fd), lock_(std::move(lock)) {
  if (fd_ > STDERR_FILENO) fcntl(fd_, F_SETFD, FD_CLOEXEC);
}

JsonObject Events::make(const char* event) const {
  JsonObject object;
  object.number("schema", 1).text("event", event).text("time", date_ms_text(unix_now_ms()));
  return object.text("lock", lock_);
}

void Events::send(const JsonObject& event) const {
  if (fd_ >= 0) write_in_time(fd_, event.done() + "\n");
}

}  // namespace redlatch::cli
