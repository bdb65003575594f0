// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Transfer: receives and sends over the links, gives the service what came, and ends connections
// that are broken.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/reply.h"
#include "base/thread_annotations.h"
#include "net/epoll_set.h"
#include "runtime/alarm.h"
#include "runtime/links.h"
#include "runtime/logins.h"
#include "runtime/parts.h"
#include "runtime/polling.h"
#include "runtime/runtime_mutex.h"
#include "runtime/service.h"
#include "runtime/shutdown.h"
#include "runtime/wakeup.h"

namespace redlatch::runtime {

class Transfer {
 public:
  explicit Transfer(const Parts &parts);

  // ---- output
  void append(size_t node, std::span<const std::string_view> argv) REQUIRES(runtime_mutex) {
    links_[node].append(argv);
    note_output();
  }
  void append_auth(Link &link) noexcept REQUIRES(runtime_mutex) {
    if (logins_.authenticate(link)) note_output();
  }
  void send_on_messages(size_t node, std::span<const std::string_view> argv)
      REQUIRES(runtime_mutex);
  bool is_sending() const REQUIRES(runtime_mutex) { return is_sending_; }
  void flush(Lock &lock) REQUIRES(runtime_mutex);
  void flush_if_no_leader_will(Lock &lock) REQUIRES(runtime_mutex);
  void flush_unless_reader_will(Lock &lock) REQUIRES(runtime_mutex);
  void set_write_blocked(Link &link, bool is_on) REQUIRES(runtime_mutex);

  // ---- input. The caller is the leader.
  void note_ready(const net::EpollSet::Seen &seen) REQUIRES(runtime_mutex);
  bool note_only_one() REQUIRES(runtime_mutex);
  void receive(Lock &lock) REQUIRES(runtime_mutex);
  bool take_in() REQUIRES(runtime_mutex);
  // So many waits have ended.
  void note_finished(size_t count) REQUIRES(runtime_mutex) { finished_count_ += count; }
  // Callers that just got replies likely send again: let them append, for one write. True once.
  bool should_yield() REQUIRES(runtime_mutex) { return std::exchange(should_yield_, false); }

  // ---- time
  bool run_timers(Nanos now) REQUIRES(runtime_mutex);
  // The service may have timers that are due earlier.
  void wake_background_in_time() REQUIRES(runtime_mutex) { alarm_.wake_by(service_->next_due()); }

  // ---- the end of connections
  void disconnect_broken(Lock &lock) REQUIRES(runtime_mutex);
  // In a handler of all exceptions, where no single link can be said to have caused it.
  void drop_all_after_exception() noexcept REQUIRES(runtime_mutex) {
    (void)wakeup_.log().add_caught();
    links_.drop_all();
  }

 private:
  void dispatch(Link &link) REQUIRES(runtime_mutex);
  void note_output() REQUIRES(runtime_mutex) {
    is_output_due_ = true;
    alarm_.note_sent();
  }

  Wakeup &wakeup_;
  Alarm &alarm_;
  Service &service_;
  Links &links_;
  Shutdown &shutdown_;
  Polling &polling_;
  Logins &logins_;

  bool is_output_due_ GUARDED_BY(runtime_mutex) =
      false;  // some link may have something that can be sent
  bool is_sending_ GUARDED_BY(runtime_mutex) = false;
  std::condition_variable sent_;                         // is_sending_ turned false
  size_t finished_count_ GUARDED_BY(runtime_mutex) = 0;  // waits that ended since the last read
  size_t batch_size_ GUARDED_BY(runtime_mutex) = 0;      // waits that the last read ended
  bool should_yield_ GUARDED_BY(runtime_mutex) = false;  // once, before the next write
};

}  // namespace redlatch::runtime
