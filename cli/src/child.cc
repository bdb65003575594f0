// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "exit_code.h"
#include "text.h"

namespace redlatch::cli {
namespace {

using Variables = std::vector<std::pair<std::string, std::string>>;

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  out.reserve(texts.size() + 1);
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

std::vector<std::string> merged_environment(const Variables& variables) {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const auto is_replaced = [&](const auto& variable) {
      return text.starts_with(variable.first + "=");
    };
    if (std::none_of(variables.begin(), variables.end(), is_replaced)) out.push_back(text);
  }
  for (const auto& [name, value] : variables) {
    out.push_back(name);
    out.back().append("=").append(value);
  }
  return out;
}

// Everything that the new process needs, made before fork(): after it, in a process with threads,
// nothing may allocate.
struct Plan {
  char* const* words;
  char* const* environment;
  const Signals& signals;
  const Terminal& terminal;
  bool takes_group;
  bool takes_terminal;
  pid_t parent;
  int failure_fd;
};

[[noreturn]] void become_child(const Plan& plan) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  // The parent may have ended before the line above.
  if (getppid() != plan.parent) _exit(kExitSignal + SIGTERM);
  if (plan.takes_group) setpgid(0, 0);
  if (plan.takes_terminal) plan.terminal.give_from_child();
  plan.signals.restore_in_child();
  execvpe(plan.words[0], plan.words, plan.environment);
  const int error = errno;
  (void)!write(plan.failure_fd, &error, sizeof error);
  _exit(kExitNotFound);
}

// Returns 0 when the new program runs, else the errno of exec. The pipe closes when exec succeeds.
int exec_error(int fd) {
  int error = 0;
  ssize_t size = 0;
  do {
    size = read(fd, &error, sizeof error);
  } while (size < 0 && errno == EINTR);
  return size == sizeof error ? error : 0;
}

int code_of(const siginfo_t& info) {
  return info.si_code == CLD_EXITED ? info.si_status : kExitSignal + info.si_status;
}

void reap_strangers(pid_t own_child) {
  while (true) {
    siginfo_t info{};
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) return;
    if (info.si_pid == 0 || info.si_pid == own_child) return;
    waitpid(info.si_pid, nullptr, WNOHANG);
  }
}

}  // namespace

Child::Child(const RunOptions& options, const Variables& variables, const Signals& signals,
             Terminal& terminal)
    : has_group_(!options.is_foreground) {
  std::vector<std::string> word_texts = options.words;
  std::vector<std::string> variable_texts = merged_environment(variables);
  const std::vector<char*> word_pointers = pointers(word_texts);
  const std::vector<char*> variable_pointers = pointers(variable_texts);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    throw Failure{kExitSystem, std::string("cannot make a pipe: ") + strerror(errno)};
  }
  FileDescriptor reading(ends[0]);
  FileDescriptor writing(ends[1]);

  const Plan plan = {word_pointers.data(),
                     variable_pointers.data(),
                     signals,
                     terminal,
                     has_group_,
                     has_group_ && terminal.is_for_child(),
                     getpid(),
                     writing.get()};
  pid_ = fork();
  if (pid_ == 0) become_child(plan);
  if (pid_ < 0) throw Failure{kExitSystem, std::string("cannot fork: ") + strerror(errno)};
  writing.close();
  const int error = exec_error(reading.get());
  if (plan.takes_terminal) terminal.was_given();
  if (error == 0) return;
  reap();
  terminal.take_back();
  throw Failure{
      error == ENOENT ? kExitNotFound : kExitNotExecutable,
      "cannot run " + in_quotes(without_secrets(options.words.front())) + ": " + strerror(error)};
}

Child::Change Child::poll() {
  reap_strangers(pid_);
  Change change;
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
      info.si_pid == pid_) {
    change.exit_code = code_of(info);
    return change;
  }
  info = {};
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WCONTINUED | WNOHANG) == 0 &&
      info.si_pid == pid_) {
    is_stopped_ = info.si_code == CLD_STOPPED;
    if (is_stopped_) change.stop_signal = info.si_status;
  }
  return change;
}

std::string Child::words() const {
  return (has_group_ ? "process group " : "process ") + std::to_string(pid_);
}

void Child::signal(int signal) const { kill(has_group_ ? -pid_ : pid_, signal); }

void Child::forward(int number) const {
  signal(number);
  if (!ends_wait(number)) return;
  // poll() may not have reported a recent stop yet.
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WNOHANG | WNOWAIT);
  if (is_stopped_ || info.si_pid == pid_) signal(SIGCONT);
}

void Child::look_for_nested() { nested_.update(living_processes(), pid_, has_group_); }

// All processes are stopped before any is killed: a running one could start others meanwhile, which
// would not be found.
void Child::kill_all() {
  signal(SIGSTOP);
  std::size_t count = 0;
  do {
    count = nested_.all().size();
    look_for_nested();
    for (const auto& [group, session] : nested_.all()) kill(-group, SIGSTOP);
  } while (nested_.all().size() > count);
  for (const auto& [group, session] : nested_.all()) kill(-group, SIGKILL);
  signal(SIGKILL);
}

bool Child::is_all_gone() {
  look_for_nested();
  return nested_.all().empty() && living_count() == 0;
}

int Child::living_count() const {
  const Processes processes = living_processes();
  return static_cast<int>(
      std::count_if(processes.begin(), processes.end(),
                    [this](const auto& entry) { return entry.second.group == pid_; }));
}

void Child::reap() {
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace redlatch::cli
