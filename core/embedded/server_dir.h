// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// ServerDir: the folder of an embedded server, and its files. Used by the library, which connects
// to the server there, and by the supervisor program, which runs it.
//
//   clients  a client holds a shared flock from its first connection until it is shut down; the
//            kernel unlocks the file for a killed process. The supervisor locks it exclusively to
//            end.
//   start    locked exclusively while a server is started, until that server answers.
//   server   locked exclusively by the supervisor for its life, which makes it the owner of the
//            socket. Contains the process id of the supervisor.
//   socket   the server's socket.
//   log      the output of server and supervisor.
//
// The lock files are never removed: otherwise two processes could lock two files of one name, and
// both would have the lock.
#pragma once

#include <sys/un.h>

#include <string>
#include <string_view>

#include "base/limits.h"
#include "base/settings.h"
#include "base/status.h"
#include "host/descriptor.h"

namespace redlatch::embedded {

inline constexpr std::string_view kClientsFile = "clients";
inline constexpr std::string_view kStartFile = "start";
inline constexpr std::string_view kServerFile = "server";
inline constexpr std::string_view kLogFile = "log";

// Both are in a sockaddr_un, whose path ends in a NUL.
static_assert(kMaxSocketPath < sizeof(sockaddr_un::sun_path));
static_assert(kMaxFolderPath + 1 + kSocketFile.size() <= kMaxSocketPath);

// The status of a file operation that failed with this errno: kUnavailable if a resource is
// exhausted, which may pass, else kDenied.
Status status_of(int error);

class ServerDir {
 public:
  // Make the folder if it is missing, and check that no other user can have put files into it. If a
  // umask has removed the owner's rights to it, they are restored.
  static Outcome open(const std::string &path, ServerDir &dir);
  // The same, but a missing folder is not made: `is_there` is false then.
  static Outcome look(const std::string &path, ServerDir &dir, bool &is_there);

  const std::string &path() const { return path_; }
  // Open a file for reading and writing. Make it if it is missing, and restore the owner's rights.
  Outcome open_file(std::string_view name, int flags, Descriptor &file) const;
  // True if `name` still refers to the open `file`, and not to a newer one.
  bool has(std::string_view name, const Descriptor &file) const;
  void remove(std::string_view name) const;

 private:
  Outcome check() const;
  bool restore_file(const std::string &name) const;
  Outcome refuse(const std::string &why, Status status = Status::kDenied) const;

  std::string path_;
  Descriptor handle_;
};

// flock() without waiting. @return 0, or errno: EWOULDBLOCK if it is locked elsewhere.
int lock(const Descriptor &file, bool is_exclusive);
// Unlocks it for all that share the open file, forked processes included.
void unlock(const Descriptor &file);

}  // namespace redlatch::embedded
