// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "line_writer.h"

#include <poll.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "signals.h"

namespace redlatch::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostWaitingBytes = 64 * 1024;
// For a file that has room: the machine is so busy that the thread does not run.
constexpr auto kPatienceWithRoom = std::chrono::seconds(5);

// Never destroyed: the thread may be blocked in a write until the process ends.
class LineWriter {
 public:
  explicit LineWriter(const struct stat& file) : device_(file.st_dev), inode_(file.st_ino) {
    const AllSignalsBlocked blocked;
    std::thread([this] { write_lines(); }).detach();
  }

  [[nodiscard]] bool is_for(const struct stat& file) const {
    return file.st_dev == device_ && file.st_ino == inode_;
  }

  void add(int fd, std::string_view text) {
    const std::lock_guard lock(mutex_);
    if (waiting_bytes_ + text.size() > kMostWaitingBytes) return;
    lines_.emplace_back(fd, text);
    fd_ = fd;
    waiting_bytes_ += text.size();
    changed_.notify_all();
  }

  void flush(Clock::time_point now, Clock::duration patience) {
    std::unique_lock lock(mutex_);
    if (is_stuck_) return;
    const auto is_written = [this] { return waiting_bytes_ == 0; };
    is_stuck_ =
        !changed_.wait_until(lock, now + patience, is_written) &&
        (!await_room(fd_, 0) || !changed_.wait_until(lock, now + kPatienceWithRoom, is_written));
  }

 private:
  void write_lines() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return !lines_.empty(); });
      const auto [fd, text] = std::move(lines_.front());
      lines_.pop_front();
      lock.unlock();
      (void)write_all(fd, text);  // A reader that closed is no error.
      lock.lock();
      waiting_bytes_ -= text.size();
      is_stuck_ = false;
      changed_.notify_all();
    }
  }

  const dev_t device_;
  const ino_t inode_;
  std::mutex mutex_;  // Guards what follows.
  std::condition_variable changed_;
  std::deque<std::pair<int, std::string>> lines_;
  std::size_t waiting_bytes_ = 0;  // That which is being written included.
  int fd_ = -1;                    // For the last line.
  bool is_stuck_ = false;          // Its reader was stuck, and no line was written since.
};

std::vector<LineWriter*>& writers() {
  static auto* const all = new std::vector<LineWriter*>();
  return *all;
}

// Two descriptors of one file have one thread: the lines of two would mix.
LineWriter* writer_for(int fd) {
  struct stat file {};
  if (fstat(fd, &file) != 0) return nullptr;
  for (LineWriter* writer : writers()) {
    if (writer->is_for(file)) return writer;
  }
  return nullptr;
}

}  // namespace

void start_line_writer(int fd) {
  struct stat file {};
  if (fstat(fd, &file) != 0 || writer_for(fd) != nullptr) return;
  writers().reserve(writers().size() + 1);
  writers().push_back(std::make_unique<LineWriter>(file).release());
}

bool write_by_thread(int fd, std::string_view text) {
  LineWriter* const writer = writer_for(fd);
  if (writer != nullptr) writer->add(fd, text);
  return writer != nullptr;
}

void flush_line_writers(long limit_ms) {
  const auto now = Clock::now();
  for (LineWriter* writer : writers()) writer->flush(now, std::chrono::milliseconds(limit_ms));
}

// `fd` is below FD_SETSIZE: the option that names a descriptor allows no other.
bool await_room(int fd, long limit_ms) {
  fd_set fds;
  FD_ZERO(&fds);
  FD_SET(fd, &fds);
  timeval limit = {limit_ms / 1000, limit_ms % 1000 * 1000};
  return select(fd + 1, nullptr, &fds, nullptr, limit_ms < 0 ? nullptr : &limit) == 1;
}

bool has_no_reader(int fd) {
  pollfd output = {fd, 0, 0};
  return poll(&output, 1, 0) > 0 && (output.revents & POLLERR) != 0;
}

int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t size = write(fd, text.data(), text.size());
    if (size >= 0) {
      text.remove_prefix(static_cast<std::size_t>(size));
    } else if (errno == EAGAIN) {
      // Another process that shares the file has set O_NONBLOCK; a line must not stay half written.
      (void)await_room(fd, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

}  // namespace redlatch::cli
