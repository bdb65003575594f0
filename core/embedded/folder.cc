// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "embedded/folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/text.h"

namespace redlatch::embedded {

std::string default_folder() { return "/tmp/redlatch-" + std::to_string(geteuid()); }

std::string reason_of(int error) {
  std::array<char, 128> buffer{};
  return strerror_r(error, buffer.data(), buffer.size());
}

Outcome Folder::refuse(const std::string &why) const {
  return failure(Status::kDenied,
                 "the folder " + quoted(path_, kMaxFolderPath) + " of the embedded server " + why);
}

Outcome Folder::open(const std::string &path, Folder &folder) {
  bool is_there = false;
  folder.path_ = path;
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return folder.refuse("cannot be made: " + reason_of(errno));
  }
  auto outcome = look(path, folder, is_there);
  if (outcome.ok() && !is_there) return folder.refuse("was removed while it was opened");
  return outcome;
}

Outcome Folder::look(const std::string &path, Folder &folder, bool &is_there) {
  folder.path_ = path;
  folder.handle_ = Descriptor(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  is_there = folder.handle_.is_open();
  if (is_there) return folder.check();
  return errno == ENOENT ? Outcome{} : folder.refuse("cannot be opened: " + reason_of(errno));
}

// Others could put a socket of their own there, or lock the files for ever.
Outcome Folder::check() const {
  struct stat info {};
  if (fstat(handle_.get(), &info) != 0) return refuse("cannot be seen: " + reason_of(errno));
  if (S_ISLNK(info.st_mode)) return refuse("is a symbolic link: name what it points to");
  if (!S_ISDIR(info.st_mode)) return refuse("is no folder");
  if (info.st_uid != geteuid()) {
    return refuse("belongs to user " + std::to_string(info.st_uid) + ": it must be that of user " +
                  std::to_string(geteuid()) + ", who runs this");
  }
  if ((info.st_mode & 0077) == 0) return {};
  std::string mode = "0000";
  for (size_t i = 0; i < 4; i++) mode[3 - i] = static_cast<char>('0' + (info.st_mode >> 3 * i) % 8);
  return refuse("has the mode " + mode + ": others must not get in, so it must be 0700");
}

Outcome Folder::open_file(std::string_view name, int flags, Descriptor &file) const {
  const std::string text(name);
  file = Descriptor(
      openat(handle_.get(), text.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | flags, 0600));
  if (file.is_open()) return {};
  return refuse("has a file " + quoted(name) + " that cannot be opened: " + reason_of(errno));
}

bool Folder::has(std::string_view name, const Descriptor &file) const {
  struct stat ours {};
  struct stat there {};
  const std::string at = path_ + "/" + std::string(name);
  return file.is_open() && fstat(file.get(), &ours) == 0 && lstat(at.c_str(), &there) == 0 &&
         ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

void Folder::remove(std::string_view name) const {
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
