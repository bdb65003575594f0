// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "supervisor.h"
#include "host/clock.h"
#include "resp/command_writer.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <vector>

#include "base/text.h"
#include "embedded/server_status.h"
#include "net/connection.h"

namespace redlatch::supervisor {

using embedded::kClientsFile;
using embedded::kLogFile;
using embedded::kServerFile;

namespace {

constexpr Nanos kSecond = 1000 * kMs;
constexpr Nanos kCheckEvery = kSecond;
// A loop in a shell that locks again and again does not start a server for each round.
constexpr Nanos kGrace = 3 * kSecond;
constexpr Nanos kAnswerWithin = kSecond;
constexpr Nanos kStartWithin = 10 * kSecond;
constexpr Nanos kTakeOverWithin = 3 * kSecond;
constexpr Nanos kRetry = 5 * kMs;
// Programs that clean /tmp remove files that are unused for days.
constexpr Nanos kKeepEvery = 600 * kSecond;
constexpr off_t kMaxLog = 256 * 1024;

void sleep_for(Nanos duration) {
  const timespec left{duration / kSecond, duration % kSecond};
  nanosleep(&left, nullptr);
}

std::string timestamp() {
  const time_t now = time(nullptr);
  tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> buffer{};
  const size_t size = strftime(buffer.data(), buffer.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return {buffer.data(), size};
}

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "?";
  return name.data();
}

std::string how_it_ended(int wait_status) {
  if (WIFSIGNALED(wait_status)) return "signal " + std::to_string(WTERMSIG(wait_status));
  return "exit code " + std::to_string(WEXITSTATUS(wait_status));
}

}  // namespace

Supervisor::Supervisor(const std::string &folder, std::string binary) : binary_(std::move(binary)) {
  settings_.folder = folder;
  settings_.socket_path = folder + "/" + std::string(kSocketFile);
  settings_.command_timeout = kAnswerWithin;
  sigemptyset(&signals_);
  for (const int signal : {SIGCHLD, SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals_, signal);
  sigprocmask(SIG_BLOCK, &signals_, nullptr);
}

Outcome Supervisor::start() {
  bool is_there = false;
  auto outcome = embedded::ServerDir::look(settings_.folder, dir_, is_there);
  if (!outcome.ok()) return outcome;
  if (!is_there) return failure(Status::kUnavailable, "the folder was removed");
  if (outcome = open_log(); !outcome.ok()) return outcome;
  if (outcome = take_folder(); !outcome.ok()) return outcome;
  if (outcome = dir_.open_file(kClientsFile, 0, clients_); !outcome.ok()) return outcome;
  if (outcome = launch(); !outcome.ok()) return outcome;
  if (outcome = await_server(); !outcome.ok()) {
    say(outcome.message);
    stop();
    return outcome;
  }
  in_use_at_ = kept_at_ = boot_now();
  say("started " + binary_ + " as process " + std::to_string(server_));
  return {};
}

Outcome Supervisor::open_log() {
  auto outcome = dir_.open_file(kLogFile, O_APPEND, log_);
  if (!outcome.ok()) return outcome;
  keep_log_short();
  dup2(log_.get(), STDOUT_FILENO);
  dup2(log_.get(), STDERR_FILENO);
  return {};
}

// An earlier supervisor may be about to end, because its server has ended.
Outcome Supervisor::take_folder() {
  auto outcome = dir_.open_file(kServerFile, 0, server_lock_);
  if (!outcome.ok()) return outcome;
  const Nanos limit = boot_now() + kTakeOverWithin;
  while (embedded::lock(server_lock_, true) != 0) {
    std::array<char, 300> owner{};
    if (boot_now() < limit) {
      sleep_for(kRetry);
      continue;
    }
    const ssize_t n = pread(server_lock_.get(), owner.data(), owner.size(), 0);
    const std::string_view who(owner.data(), n > 0 ? static_cast<size_t>(n) : 0);
    return failure(Status::kUnavailable, settings_.address() +
                                             ": no server answers, but the folder is in use by " +
                                             quoted(who.substr(0, who.find('\n')), owner.size()));
  }
  const std::string who = "process " + std::to_string(getpid()) + " on " + host_name() + "\n";
  if (ftruncate(server_lock_.get(), 0) != 0 ||
      pwrite(server_lock_.get(), who.data(), who.size(), 0) < 0) {
    say("cannot write the process id: " + reason_of(errno));
  }
  dir_.remove(kSocketFile);  // of a server that was killed
  return {};
}

Outcome Supervisor::launch() {
  const pid_t parent = getpid();
  server_ = fork();
  if (server_ == 0) become_server(parent);
  if (server_ > 0) return {};
  return failure(Status::kUnavailable, "cannot start " + binary_ + ": " + reason_of(errno));
}

// Nothing is saved: the locks of a server end with it. The server must not outlive its supervisor,
// which alone ends it.
void Supervisor::become_server(pid_t parent) const {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  sigprocmask(SIG_UNBLOCK, &signals_, nullptr);
  std::signal(SIGPIPE, SIG_DFL);
  const std::array<const char *, 18> words = {binary_.c_str(),
                                              "--port",
                                              "0",
                                              "--unixsocket",
                                              settings_.socket_path.c_str(),
                                              "--unixsocketperm",
                                              "600",
                                              "--dir",
                                              settings_.folder.c_str(),
                                              "--save",
                                              "",
                                              "--appendonly",
                                              "no",
                                              "--daemonize",
                                              "no",
                                              "--maxmemory-policy",
                                              "noeviction",
                                              nullptr};
  execv(binary_.c_str(), const_cast<char *const *>(words.data()));
  say("cannot execute " + binary_ + ": " + reason_of(errno));
  _exit(127);
}

Outcome Supervisor::await_server() {
  const Nanos limit = boot_now() + kStartWithin;
  const std::string see = "; see " + settings_.folder + "/" + std::string(kLogFile);
  std::string ping;
  const std::array<std::string_view, 1> words = {"PING"};
  resp::append_command(ping, words);
  while (boot_now() < limit) {
    int wait_status = 0;
    if (has_ended(wait_status)) {
      server_ = -1;
      // A binary that is not a server will not be one at the next attempt.
      return failure(WIFSIGNALED(wait_status) ? Status::kUnavailable : Status::kUnsupported,
                     quoted(binary_, kMaxNameBytes) + " did not start as an embedded server: " +
                         how_it_ended(wait_status) + see);
    }
    net::Connection connection;
    std::vector<resp::ReplyPtr> replies;
    if (connection.dial(settings_, limit, -1).ok() &&
        connection.ask(ping, boot_now() + kAnswerWithin, replies).ok() && !replies[0]->is_error()) {
      return {};
    }
    sleep_for(kRetry);
  }
  return failure(Status::kUnavailable, quoted(binary_, kMaxNameBytes) + " does not answer" + see);
}

bool Supervisor::has_ended(int &wait_status) {
  return server_ > 0 && waitpid(server_, &wait_status, WNOHANG) == server_;
}

// 0: no signal came.
int Supervisor::next_signal(Nanos patience) const {
  const timespec left{patience / kSecond, patience % kSecond};
  const int signal = sigtimedwait(&signals_, nullptr, &left);
  return signal > 0 ? signal : 0;
}

void Supervisor::run() {
  while (!is_over_) {
    const int signal = next_signal(kCheckEvery);
    int wait_status = 0;
    if (signal == SIGTERM) {
      say("stopped by SIGTERM");
      stop();
    } else if (has_ended(wait_status)) {
      server_ = -1;
      say("the server ended: " + how_it_ended(wait_status));
      stop();
    } else if (signal == 0) {
      tick();
    }
  }
}

void Supervisor::tick() {
  keep_log_short();
  keep_from_cleaners();
  if (!dir_.has(kClientsFile, clients_)) {
    // It was removed: new clients lock another file, unless the folder was removed, too.
    Descriptor fresh;
    if (dir_.open_file(kClientsFile, 0, fresh).ok()) clients_ = std::move(fresh);
  }
  // While the file is locked, new clients wait, and find no server afterwards.
  const bool is_alone = embedded::lock(clients_, true) == 0;
  if (!is_alone || has_new_client()) in_use_at_ = boot_now();
  if (is_alone && boot_now() - in_use_at_ >= kGrace && !is_needed()) {
    say("no client and no lock is left");
    stop();
  }
  if (is_alone) embedded::unlock(clients_);
}

// True if a client joined since the last call: joining sets the time of the file.
bool Supervisor::has_new_client() {
  struct stat info {};
  if (fstat(clients_.get(), &info) != 0) return false;
  const bool is_same =
      info.st_mtim.tv_sec == touched_.tv_sec && info.st_mtim.tv_nsec == touched_.tv_nsec;
  touched_ = info.st_mtim;
  return !is_same;
}

// The lock of a client that ended lasts until its lease expires; a detached one may be attached.
bool Supervisor::is_needed() {
  // In a folder that was removed no client finds this server any more.
  if (!dir_.has(kServerFile, server_lock_)) return false;
  embedded::ServerStatus status;
  const auto outcome = embedded::read_activity(settings_, boot_now() + kAnswerWithin, status);
  if (!outcome.ok()) say(outcome.message);
  return !outcome.ok() || status.client_count > 0 || status.lock_count > 0;
}

void Supervisor::keep_log_short() const {
  struct stat info {};
  if (fstat(log_.get(), &info) != 0 || info.st_size <= kMaxLog) return;
  if (ftruncate(log_.get(), 0) == 0) say("earlier lines were dropped: the log was too long");
}

void Supervisor::keep_from_cleaners() {
  if (boot_now() - kept_at_ < kKeepEvery) return;
  kept_at_ = boot_now();
  for (const std::string_view name :
       {kClientsFile, embedded::kStartFile, kServerFile, kSocketFile, kLogFile}) {
    const std::string path = settings_.folder + "/" + std::string(name);
    utimensat(AT_FDCWD, path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
  }
  utimensat(AT_FDCWD, settings_.folder.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

// Killed, because there is nothing to save, and new clients should not wait.
void Supervisor::stop() {
  is_over_ = true;
  if (server_ > 0) {
    kill(server_, SIGKILL);
    waitpid(server_, nullptr, 0);
    server_ = -1;
  }
  if (dir_.has(kServerFile, server_lock_)) dir_.remove(kSocketFile);
}

void Supervisor::say(const std::string &text) const {
  const std::string line =
      timestamp() + " supervisor " + std::to_string(getpid()) + ": " + text + "\n";
  if (write(log_.get(), line.data(), line.size()) < 0) return;
}

}  // namespace redlatch::supervisor
