// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Files, as far as options name them.
#pragma once

#include <cstdint>
#include <string>

namespace redlatch {

enum class FileKind : uint8_t { kFile, kFolder, kOther };

// See that `path` can be read, and what it is. @return 0, or errno.
[[nodiscard]] int look_at_file(const std::string &path, FileKind &kind);

// The path of the working directory. @return 0, or errno.
[[nodiscard]] int working_folder(std::string &path);

}  // namespace redlatch
