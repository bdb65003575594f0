// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "terminal.h"

#include <fcntl.h>
#include <unistd.h>

namespace redlatch::cli {

Terminal::Terminal() : fd_(open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)) {}

bool Terminal::is_ours() const { return exists() && tcgetpgrp(fd_.get()) == getpgrp(); }

bool Terminal::is_for_child() const {
  return is_ours() && isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1;
}

void Terminal::give_from_child() const { tcsetpgrp(fd_.get(), getpid()); }

void Terminal::give(pid_t group) {
  tcsetpgrp(fd_.get(), group);
  is_given_ = true;
}

void Terminal::take_back() {
  if (is_given_) tcsetpgrp(fd_.get(), getpgrp());
  is_given_ = false;
}

}  // namespace redlatch::cli
