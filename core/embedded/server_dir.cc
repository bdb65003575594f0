// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "embedded/server_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cassert>
#include <cerrno>

#include "base/text.h"

namespace redlatch::embedded {

namespace {

std::string octal(mode_t mode) {
  std::string text = "0000";
  for (size_t i = 0; i < 4; i++) text[3 - i] = static_cast<char>('0' + (mode >> 3 * i) % 8);
  return text;
}

// Through the descriptor, because the path may name another folder by now. It is an O_PATH one,
// which fchmod() refuses.
bool set_mode(const Descriptor &folder, mode_t mode) {
  return chmod(("/proc/self/fd/" + std::to_string(folder.get())).c_str(), mode) == 0;
}

}  // namespace

Status status_of(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case EIO:
      return Status::kUnavailable;
    default:
      return Status::kDenied;
  }
}

Outcome ServerDir::refuse(const std::string &why, Status status) const {
  return failure(status,
                 "the folder " + quoted(path_, kMaxFolderPath) + " of the embedded server " + why);
}

Outcome ServerDir::open(const std::string &path, ServerDir &dir) {
  bool is_there = false;
  dir.path_ = path;
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return dir.refuse("cannot be made: " + reason_of(errno), status_of(errno));
  }
  auto outcome = look(path, dir, is_there);
  if (outcome.ok() && !is_there) return dir.refuse("was removed while it was opened");
  return outcome;
}

Outcome ServerDir::look(const std::string &path, ServerDir &dir, bool &is_there) {
  dir.path_ = path;
  dir.handle_ = Descriptor(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  is_there = dir.handle_.is_open();
  if (is_there) return dir.check();
  return errno == ENOENT ? Outcome{}
                         : dir.refuse("cannot be opened: " + reason_of(errno), status_of(errno));
}

// Refuses a folder where other users could put a socket of their own, or lock the files.
Outcome ServerDir::check() const {
  struct stat info {};
  if (fstat(handle_.get(), &info) != 0) return refuse("cannot be accessed: " + reason_of(errno));
  if (S_ISLNK(info.st_mode)) return refuse("must not be a symbolic link: name its target");
  if (!S_ISDIR(info.st_mode)) return refuse("must be a folder");
  if (info.st_uid != geteuid()) {
    return refuse("must belong to user " + std::to_string(geteuid()) + " (got user " +
                  std::to_string(info.st_uid) + ")");
  }
  if ((info.st_mode & 0077) != 0) {
    return refuse("must have the mode 0700, which keeps other users out (got " +
                  octal(info.st_mode) + ")");
  }
  // A umask may have removed the owner's rights, now or when another process made the folder.
  if ((info.st_mode & 0700) == 0700 || set_mode(handle_, 0700)) return {};
  return refuse("must have the mode 0700, and that cannot be set: " + reason_of(errno) + " (got " +
                octal(info.st_mode) + ")");
}

// Make a file of ours readable and writable again, as check() does with the folder.
bool ServerDir::restore_file(const std::string &name) const {
  struct stat info {};
  return fstatat(handle_.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
         fchmodat(handle_.get(), name.c_str(), 0600, 0) == 0;
}

Outcome ServerDir::open_file(std::string_view name, int flags, Descriptor &file) const {
  assert(handle_.is_open() && name.find('/') == std::string_view::npos);
  const std::string text(name);
  const auto try_open = [&] {
    return Descriptor(openat(handle_.get(), text.c_str(),
                             O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | flags, 0600));
  };
  file = try_open();
  if (!file.is_open() && errno == EACCES && restore_file(text)) file = try_open();
  // Undo a umask, for the next process that opens the file. If this fails, that process calls
  // restore_file() itself.
  struct stat info {};
  if (file.is_open() && fstat(file.get(), &info) == 0 && (info.st_mode & 0600) != 0600) {
    (void)fchmod(file.get(), 0600);
  }
  if (file.is_open()) return {};
  return refuse("has a file " + quoted(name) + " that cannot be opened: " + reason_of(errno),
                status_of(errno));
}

bool ServerDir::has(std::string_view name, const Descriptor &file) const {
  struct stat ours {};
  struct stat there {};
  const std::string at = path_ + "/" + std::string(name);
  return file.is_open() && fstat(file.get(), &ours) == 0 && lstat(at.c_str(), &there) == 0 &&
         ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

void ServerDir::remove(std::string_view name) const {
  unlinkat(handle_.get(), std::string(name).c_str(), 0);
}

int lock(const Descriptor &file, bool is_exclusive) {
  while (flock(file.get(), (is_exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

void unlock(const Descriptor &file) {
  if (file.is_open()) flock(file.get(), LOCK_UN);
}

}  // namespace redlatch::embedded
