// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "embedded/server_attachment.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/text.h"
#include "embedded/launcher.h"
#include "host/clock.h"
#include "host/poll.h"
#include "net/epoll_set.h"

namespace redlatch::embedded {

namespace {

// How often a lock is tried: a thread that waits in flock() cannot be woken.
constexpr Nanos kRetry = 10 * kMs;

// @return false if `limit` has passed, or `wake_fd` is readable.
bool pause(Nanos limit, int wake_fd) {
  if (await_input(wake_fd, std::min(limit, boot_now() + kRetry), -1)) return false;
  return boot_now() < limit;
}

}  // namespace

// A supervisor that has locked the file exclusively is about to end; retry until it has.
Outcome ServerAttachment::join(Nanos limit, int wake_fd) {
  bool is_done = dir_.has(kClientsFile, clients_);
  while (!is_done) {
    if (auto outcome = try_join(is_done); !outcome.ok()) return outcome;
    if (!is_done && !pause(limit, wake_fd)) {
      return failure(Status::kUnavailable, settings_.address() +
                                               ": the server there is ending, and did not end "
                                               "within the time limit");
    }
  }
  return {};
}

Outcome ServerAttachment::try_join(bool &is_done) {
  Descriptor file;
  if (auto outcome = ServerDir::open(settings_.folder, dir_); !outcome.ok()) return outcome;
  if (auto outcome = dir_.open_file(kClientsFile, 0, file); !outcome.ok()) return outcome;
  const int error = lock(file, false);
  if (error != 0 && error != EWOULDBLOCK) {
    return failure(Status::kUnsupported, "no file can be locked in the folder " +
                                             quoted(settings_.folder, kMaxFolderPath) + ": " +
                                             reason_of(error) + "; name another one");
  }
  // Before it was locked, the file may have been removed and made again.
  is_done = error == 0 && dir_.has(kClientsFile, file);
  if (!is_done) return {};
  clients_ = std::move(file);
  // The supervisor sees by the file's time that a client came and left between two of its checks.
  futimens(clients_.get(), nullptr);
  return {};
}

Outcome ServerAttachment::start(const Descriptor &lock, Nanos limit, int wake_fd) const {
  const std::string supervisor = find_supervisor();
  if (supervisor.empty()) {
    unlock(lock);
    return failure(Status::kUnsupported,
                   settings_.address() +
                       ": the program redlatch-embedded, which belongs to the library, was found "
                       "neither beside " +
                       quoted(own_folder(), kMaxFolderPath) + " nor where it was installed (" +
                       REDLATCH_SUPERVISOR +
                       "); install the Debian package redlatch, or redlatch in that place");
  }
  return start_supervisor({supervisor, settings_.folder, settings_.server, &lock}, limit, wake_fd);
}

Outcome ServerAttachment::dial(net::Connection &connection, Nanos limit, int wake_fd) {
  if (auto outcome = join(limit, wake_fd); !outcome.ok()) return outcome;
  Outcome outcome;
  do {
    outcome = connection.dial(settings_, limit, wake_fd);
    if (outcome.ok() || !connection.is_nobody_there()) return outcome;
    Descriptor file;
    if (auto opened = dir_.open_file(kStartFile, 0, file); !opened.ok()) return opened;
    if (lock(file, true) != 0 || !dir_.has(kStartFile, file)) continue;
    // The process that had the lock before may just have started a server.
    outcome = connection.dial(settings_, limit, wake_fd);
    if (outcome.ok() || !connection.is_nobody_there()) {
      // Closing is not enough: a forked process may have a copy.
      unlock(file);
      return outcome;
    }
    // The program unlocks `start` when it reports, even if this thread no longer waits.
    outcome = start(file, limit, wake_fd);
    return outcome.ok() ? connection.dial(settings_, limit, wake_fd) : outcome;
  } while (pause(limit, wake_fd));
  return outcome;
}

}  // namespace redlatch::embedded
