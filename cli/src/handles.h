// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Owners of the handles of the C ABI and of file descriptors.
#pragma once

#include <unistd.h>

#include <memory>
#include <new>
#include <string>
#include <utility>

#include "redlatch/redlatch.h"

namespace redlatch::cli {

template <auto kFree>
struct Freer {
  template <typename T>
  void operator()(T* handle) const {
    kFree(handle);
  }
};

using ErrorHandle = std::unique_ptr<rl_error, Freer<rl_error_free>>;
using ClientOptionsHandle = std::unique_ptr<rl_client_options, Freer<rl_client_options_free>>;
using AcquireOptionsHandle = std::unique_ptr<rl_acquire_options, Freer<rl_acquire_options_free>>;
using ClientHandle = std::unique_ptr<rl_client, Freer<rl_client_close>>;
using RequestHandle = std::unique_ptr<rl_request, Freer<rl_request_free>>;
using NamesHandle = std::unique_ptr<rl_names, Freer<rl_names_free>>;
using LeaseHandle = std::unique_ptr<rl_lease, Freer<rl_lease_free>>;
using InfoHandle = std::unique_ptr<rl_info, Freer<rl_info_free>>;
using QueueHandle = std::unique_ptr<rl_queue, Freer<rl_queue_free>>;
using ListHandle = std::unique_ptr<rl_list, Freer<rl_list_free>>;

// For the functions that return NULL only when out of memory.
template <typename T>
T* not_null(T* handle) {
  if (handle == nullptr) throw std::bad_alloc();
  return handle;
}

class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileDescriptor() { close(); }

  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool is_open() const { return fd_ >= 0; }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

// A text of the library whose length is not known: `read` takes a buffer and its size, and returns
// the full length. A text that does not fit is read again.
template <typename Read>
std::string read_text(const Read& read) {
  std::string text(256, '\0');
  std::size_t size = read(text.data(), text.size());
  while (size >= text.size()) {
    text.resize(size + 1);
    size = read(text.data(), text.size());
  }
  text.resize(size);
  return text;
}

// Why `lease` is not held, for a message; unusual bytes are still to be escaped.
inline std::string loss_reason(const rl_lease* lease) {
  return read_text(
      [&](char* buffer, std::size_t size) { return rl_lease_lost_text(lease, buffer, size); });
}

inline std::string recall_reason(const rl_lease* lease) {
  return read_text(
      [&](char* buffer, std::size_t size) { return rl_lease_recall_reason(lease, buffer, size); });
}

}  // namespace redlatch::cli
