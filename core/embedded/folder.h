// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Folder: where the embedded server of a user lives, and the files in it. Shared by the library,
// which looks for a server there, and the supervisor program, which runs it.
//
//   clients  every client holds a shared flock for as long as it is open; the kernel takes it back
//            from a killed one. The supervisor takes it exclusively to end.
//   start    held exclusively by who starts a server, until that server answers.
//   server   held exclusively by the supervisor for its life: who holds it owns the socket. Says
//            which process that is.
//   socket   the server's.
//   log      what server and supervisor say.
//
// The lock files are never removed: two processes that lock two files of one name would both be
// right.
#pragma once

#include <string>
#include <string_view>

#include "base/descriptor.h"
#include "base/status.h"

namespace redlatch::embedded {

inline constexpr std::string_view kClientsFile = "clients";
inline constexpr std::string_view kStartFile = "start";
inline constexpr std::string_view kServerFile = "server";
inline constexpr std::string_view kSocketFile = "socket";
inline constexpr std::string_view kLogFile = "log";

// sockaddr_un::sun_path, less "/socket" and its NUL.
inline constexpr size_t kMaxFolderPath = 100;

// The same for all processes of a user, however they were started: see docs/design/0007.
std::string default_folder();

// What errno means, in words.
std::string reason_of(int error);

// Why a file cannot be used, by errno: the rights are wrong, or something is used up, which may
// pass.
Status status_of(int error);

class Folder {
 public:
  // Make the folder if it is missing, and check that no other user can have put files into it. The
  // owner's rights to the folder and its files are restored if a umask has removed them.
  static Outcome open(const std::string &path, Folder &folder);
  // The same without making one. `is_there` says whether there is any.
  static Outcome look(const std::string &path, Folder &folder, bool &is_there);

  const std::string &path() const { return path_; }
  // Open a file for reading and writing, and make it if it is missing.
  Outcome open_file(std::string_view name, int flags, Descriptor &file) const;
  // Whether `file` is still what stands under `name`, and not a removed one.
  bool has(std::string_view name, const Descriptor &file) const;
  void remove(std::string_view name) const;

 private:
  Outcome check() const;
  bool restore_file(const std::string &name) const;
  Outcome refuse(const std::string &why, Status status = Status::kDenied) const;

  std::string path_;
  Descriptor handle_;
};

// flock() without waiting. 0, or errno: EWOULDBLOCK if others hold it.
int lock(const Descriptor &file, bool is_exclusive);
// For all that share the open file, forked processes included.
void unlock(const Descriptor &file);

}  // namespace redlatch::embedded
