// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "host/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>

#include "host/descriptor.h"

namespace redlatch {

int look_at_file(const std::string &path, FileKind &kind) {
  // Non-blocking, because open() of a named pipe without a writer would not return.
  const Descriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat seen {};
  if (file.get() < 0 || fstat(file.get(), &seen) != 0) return errno;
  kind = S_ISREG(seen.st_mode)   ? FileKind::kFile
         : S_ISDIR(seen.st_mode) ? FileKind::kFolder
                                 : FileKind::kOther;
  return 0;
}

int working_folder(std::string &path) {
  const std::unique_ptr<char, decltype(&std::free)> folder(getcwd(nullptr, 0), std::free);
  if (folder == nullptr) return errno;
  path = folder.get();
  return 0;
}

}  // namespace redlatch
