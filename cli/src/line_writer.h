// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Lines to files whose readers may be stuck: a full pipe or socket, a stopped terminal. Each file
// has a thread that writes, so that nothing else waits for it, and a limited number of bytes that
// wait; further lines are lost, each as a whole. O_NONBLOCK is not possible: it would change the
// file for every process that shares it. Lines may come from any thread; writers are started and
// flushed by the main thread.
#pragma once

#include <string_view>

namespace redlatch::cli {

// From here on lines to `fd`, and to other descriptors of the same file, are written by a thread.
// Throws std::system_error if no thread can be started.
void start_line_writer(int fd);

// @return false if no thread writes to `fd`: then the caller has to.
[[nodiscard]] bool write_by_thread(int fd, std::string_view text);

// How long a reader that is stuck may hold up the command, each time.
constexpr long kPatienceMs = 100;

// Waits until all lines are written, before something that must not come before them: at most so
// long for a reader that is stuck, and some seconds for a file that has room. A file whose reader
// was stuck is not waited for again until it has taken a line.
void flush_line_writers(long limit_ms);

// Waits until `fd` accepts bytes, at most so long; without a limit if that is below 0.
bool await_room(int fd, long limit_ms);

// True if `fd` is a pipe or a socket whose reader has closed it.
[[nodiscard]] bool has_no_reader(int fd);

// Writes all of `text`, however long that takes. Returns 0 or an errno. One call for each line
// where the kernel permits, so that lines of several processes do not mix.
int write_all(int fd, std::string_view text);

}  // namespace redlatch::cli
