// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "askpass.h"

#include <fcntl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <string_view>

#include "exit_code.h"
#include "handles.h"

namespace redlatch::cli {
namespace {

constexpr std::array<int, 4> kEnding = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
volatile std::sig_atomic_t ending_signal = 0;

// While it exists, a signal makes read() return instead of ending the process.
class SignalGuard {
 public:
  SignalGuard() {
    struct sigaction action {};
    action.sa_handler = [](int signal) { ending_signal = signal; };
    for (std::size_t i = 0; i < kEnding.size(); ++i) {
      sigaction(kEnding[i], nullptr, &before_[i]);
      if (before_[i].sa_handler != SIG_IGN) sigaction(kEnding[i], &action, nullptr);
    }
  }
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;
  ~SignalGuard() {
    for (std::size_t i = 0; i < kEnding.size(); ++i) sigaction(kEnding[i], &before_[i], nullptr);
  }

 private:
  std::array<struct sigaction, kEnding.size()> before_{};
};

class EchoOff {
 public:
  explicit EchoOff(int fd) : fd_(fd) {
    tcgetattr(fd_, &before_);
    termios silent = before_;
    silent.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    silent.c_lflag |= ECHONL;
    // A stopped job would leave the terminal without echo.
    silent.c_cc[VSUSP] = _POSIX_VDISABLE;
    tcsetattr(fd_, TCSAFLUSH, &silent);
  }
  EchoOff(const EchoOff&) = delete;
  EchoOff& operator=(const EchoOff&) = delete;
  ~EchoOff() { tcsetattr(fd_, TCSAFLUSH, &before_); }

 private:
  int fd_;
  termios before_{};
};

std::string read_line(int fd) {
  std::string line;
  char c = 0;
  while (ending_signal == 0) {
    const ssize_t size = read(fd, &c, 1);
    if (size < 0 && errno == EINTR) continue;
    if (size != 1 || c == '\n') break;
    line += c;
  }
  return line;
}

}  // namespace

std::string ask_password() {
  const FileDescriptor terminal(open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY));
  if (!terminal.is_open()) {
    throw UsageError("--askpass needs a terminal; without one use --password-file");
  }
  constexpr std::string_view kPrompt = "redlatch: password: ";
  std::string password;
  {
    const SignalGuard signals;
    const EchoOff echo(terminal.get());
    (void)!write(terminal.get(), kPrompt.data(), kPrompt.size());
    password = read_line(terminal.get());
  }
  if (ending_signal != 0) std::raise(ending_signal);
  return password;
}

}  // namespace redlatch::cli
