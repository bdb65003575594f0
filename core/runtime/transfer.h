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
#include "net/epoll_set.h"
#include "runtime/alarm.h"
#include "runtime/links.h"
#include "runtime/logins.h"
#include "runtime/parts.h"
#include "runtime/polling.h"
#include "runtime/service.h"
#include "runtime/shutdown.h"
#include "runtime/wakeup.h"

namespace redlatch::runtime {

class Transfer {
 public:
  explicit Transfer(const Parts &parts);

  // ---- output
  void append(size_t node, std::span<const std::string_view> argv) {
    links_[node].append(argv);
    note_output();
  }
  void append_auth(Link &link) noexcept {
    if (logins_.authenticate(link)) note_output();
  }
  void send_on_messages(size_t node, std::span<const std::string_view> argv);
  bool is_sending() const { return is_sending_; }
  void flush(Lock &lock);
  void flush_if_no_leader_will(Lock &lock);
  void flush_unless_reader_will(Lock &lock);
  void set_write_blocked(Link &link, bool is_on);

  // ---- input. The caller is the leader.
  void note_ready(const net::EpollSet::Seen &seen);
  bool note_only_one();
  void receive(Lock &lock);
  bool take_in();
  void take_message(const Link &link, const Reply &reply, Nanos now);
  // So many waits have ended.
  void note_finished(size_t count) { finished_count_ += count; }
  // Callers that just got replies likely send again: let them append, for one write. True once.
  bool should_yield() { return std::exchange(should_yield_, false); }

  // ---- time
  bool run_timers(Nanos now);
  // The service may have timers that are due earlier.
  void wake_background_in_time() { alarm_.wake_by(service_->next_due()); }

  // ---- the end of connections
  void disconnect_broken(Lock &lock);
  // In a handler of all exceptions, where no single link can be said to have caused it.
  void drop_all_after_exception() noexcept {
    (void)wakeup_.log().add_caught();
    links_.drop_all();
  }

 private:
  void dispatch(Link &link);
  void note_output() {
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

  bool is_output_due_ = false;  // some link may have something that can be sent
  bool is_sending_ = false;
  std::condition_variable sent_;  // is_sending_ turned false
  size_t finished_count_ = 0;     // waits that ended since the last read
  size_t batch_size_ = 0;         // waits that the last read ended
  bool should_yield_ = false;     // once, before the next write
};

}  // namespace redlatch::runtime
