// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "signals.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

namespace redlatch::cli {
namespace {

constexpr std::array<int, 4> kEndingWait = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
// Without a child they have no receiver, and they must not end the wait.
constexpr std::array<int, 2> kDroppedInWait = {SIGUSR1, SIGUSR2};
constexpr std::array<int, 3> kOnlyWithChild = {SIGWINCH, SIGCONT, SIGTSTP};

struct Name {
  int signal;
  const char* name;
};
// sigabbrev_np needs glibc 2.32, and musl has none.
#define NAMED(signal) \
  { signal, #signal }
constexpr Name kNames[] = {
    NAMED(SIGHUP),    NAMED(SIGINT),  NAMED(SIGQUIT),   NAMED(SIGILL),  NAMED(SIGTRAP),
    NAMED(SIGABRT),   NAMED(SIGBUS),  NAMED(SIGFPE),    NAMED(SIGKILL), NAMED(SIGUSR1),
    NAMED(SIGSEGV),   NAMED(SIGUSR2), NAMED(SIGPIPE),   NAMED(SIGALRM), NAMED(SIGTERM),
    NAMED(SIGCHLD),   NAMED(SIGCONT), NAMED(SIGSTOP),   NAMED(SIGTSTP), NAMED(SIGTTIN),
    NAMED(SIGTTOU),   NAMED(SIGURG),  NAMED(SIGXCPU),   NAMED(SIGXFSZ), NAMED(SIGPROF),
    NAMED(SIGVTALRM), NAMED(SIGSYS),  NAMED(SIGWINCH),
#ifdef __linux__
    NAMED(SIGPOLL),   NAMED(SIGPWR),  NAMED(SIGSTKFLT),
#endif
};
#undef NAMED

sigset_t set_of(int signal) {
  sigset_t set{};
  sigemptyset(&set);
  sigaddset(&set, signal);
  return set;
}

}  // namespace

Signals::Signals() {
  sigemptyset(&watched_);
  sigprocmask(SIG_SETMASK, nullptr, &original_mask_);

  struct sigaction action {};
  action.sa_handler = SIG_IGN;
  // A reader of our messages that closes the pipe must not end this process: that would end the
  // child.
  sigaction(SIGPIPE, &action, &original_pipe_);
  // If SIGCHLD were ignored, the kernel would discard the child's exit code.
  action.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &action, &original_child_);

  sigaddset(&watched_, wake_signal());
  for (const int signal : kEndingWait) add(signal);
  for (const int signal : kDroppedInWait) add(signal);
  sigprocmask(SIG_BLOCK, &watched_, nullptr);
}

void Signals::begin_child() {
  watched_in_wait_ = watched_;
  sigprocmask(SIG_SETMASK, nullptr, &waiting_mask_);
  sigaddset(&watched_, SIGCHLD);
  for (const int signal : kOnlyWithChild) add(signal);
  sigprocmask(SIG_BLOCK, &watched_, nullptr);
  // The terminal is the child's: messages and tcsetpgrp() from the background must not stop us.
  const sigset_t output = set_of(SIGTTOU);
  sigprocmask(SIG_BLOCK, &output, nullptr);
}

void Signals::end_child() {
  watched_ = watched_in_wait_;
  sigprocmask(SIG_SETMASK, &waiting_mask_, nullptr);
}

void Signals::restore() const {
  sigset_t mask = original_mask_;
  sigaddset(&mask, wake_signal());  // One that is pending would end this process.
  sigprocmask(SIG_SETMASK, &mask, nullptr);
}

void Signals::restore_in_child() const {
  sigaction(SIGPIPE, &original_pipe_, nullptr);
  sigaction(SIGCHLD, &original_child_, nullptr);
  sigprocmask(SIG_SETMASK, &original_mask_, nullptr);
}

Signals::Event Signals::wait() const {
  int signal = -1;
  siginfo_t info{};
  // It ends early when the process was stopped and continued.
  while (signal < 0) signal = sigwaitinfo(&watched_, &info);
  return {signal == wake_signal() ? 0 : signal, info.si_code > 0};
}

void Signals::wake() { kill(getpid(), wake_signal()); }

int Signals::wake_signal() { return SIGRTMIN; }

void Signals::stop_self(int signal) {
  const sigset_t stopping = set_of(signal);
  sigset_t before{};
  raise(signal);
  // If it was blocked until here it stops us now.
  sigprocmask(SIG_UNBLOCK, &stopping, &before);
  sigprocmask(SIG_SETMASK, &before, nullptr);
}

void Signals::add(int signal) {
  struct sigaction action {};
  sigaction(signal, nullptr, &action);
  // A blocked signal would reach us although it is ignored.
  if (action.sa_handler != SIG_IGN) sigaddset(&watched_, signal);
}

AllSignalsBlocked::AllSignalsBlocked() {
  sigset_t all{};
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before_);
}

AllSignalsBlocked::~AllSignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

std::string signal_name(int signal) {
  const auto is_it = [signal](const Name& known) { return known.signal == signal; };
  const auto* known = std::find_if(std::begin(kNames), std::end(kNames), is_it);
  return known != std::end(kNames) ? known->name : "signal " + std::to_string(signal);
}

bool ends_wait(int signal) {
  return std::find(kEndingWait.begin(), kEndingWait.end(), signal) != kEndingWait.end();
}

}  // namespace redlatch::cli
