// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Credentials: user and password that the application gives, and gives again before they end. They
// replace those of the URL and the options. A queue gets a tag when credentials are wanted: a
// connection needs them and none are valid, they end soon, or the server has refused them.
//
// Any thread. The mutex is a leaf, as that of ClientLog: a queue is posted to under it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/password.h"
#include "base/settings.h"
#include "base/status.h"
#include "base/thread_annotations.h"
#include "runtime/completion_queue.h"

namespace redlatch::runtime {

struct Login {
  uint64_t number = 0;  // rises with each one that was given; 0: the settings have the login
  std::string user;     // empty: the default user
  Password password;
};

// Which replies of a connection answer AUTH. All other commands are those of the service.
class AuthReplies {
 public:
  void on_append() { appended_count_++; }
  // The last command that was appended is an AUTH.
  void expect(uint64_t login) { pending_.push_back({appended_count_, login}); }
  // The next reply. @return the number of the login that it is about; 0: it answers no AUTH.
  uint64_t take() {
    received_count_++;
    if (pending_.empty() || pending_.front().position != received_count_) return 0;
    const uint64_t login = pending_.front().login;
    pending_.pop_front();
    return login;
  }
  bool is_empty() const { return pending_.empty(); }
  void clear() {
    pending_.clear();
    appended_count_ = received_count_ = 0;
  }

 private:
  struct Auth {
    uint64_t position;
    uint64_t login;
  };
  uint64_t appended_count_ = 0;
  uint64_t received_count_ = 0;
  std::deque<Auth> pending_;
};

class Credentials {
 public:
  // `valid_for` may be kNever. The first call, or a watch, makes them those of the client.
  void set(std::string_view user, std::string_view password, Nanos valid_for, Nanos now);
  // The application has none now. @return true if that is the first such answer since set().
  bool fail(std::string_view why, Nanos now);
  // Post `tag` to `queue` when credentials are wanted, which may be now: once, until set() or
  // fail(). There is one watch; nullptr ends it. Throws std::bad_alloc.
  void watch(const std::shared_ptr<Queue> &queue, int64_t tag, Nanos now);

  // Wait until `limit` for valid credentials with a number above `than`. Without set() and watch()
  // `login` gets the number 0 at once.
  Outcome await(Nanos limit, uint64_t than, Login &login);
  // True if there are some with a number above `than`; `login` has them then.
  bool newer(uint64_t than, Login &login) const;
  uint64_t number() const;
  // The server has refused those with `number`. @return true if others are worth waiting for; if
  // they are new, the application is asked after a pause.
  bool refused(uint64_t number, Nanos now);

  // When on_timer() is due.
  Nanos next_due() const;
  void on_timer(Nanos now);
  // All waits end.
  void stop();

 private:
  // Those that wait have not seen yet what was given meanwhile.
  bool is_needed() const REQUIRES(mutex_) {
    return is_refused_ || (waiting_count_ > 0 && login_.number == 0);
  }
  bool is_wanted(Nanos now) const REQUIRES(mutex_) { return is_needed() || now >= refresh_at_; }
  bool is_urgent(Nanos now) const REQUIRES(mutex_) { return is_needed() || now >= ends_at_; }
  Nanos may_ask_at(Nanos now) const REQUIRES(mutex_) {
    return is_urgent(now) ? urgent_at_ : patient_at_;
  }
  void ask(Nanos now) noexcept REQUIRES(mutex_);
  Outcome missing(Nanos now) const REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::condition_variable changed_;
  bool is_used_ GUARDED_BY(mutex_) = false;  // they replace those of the settings
  bool is_stopped_ GUARDED_BY(mutex_) = false;
  Login login_ GUARDED_BY(mutex_);
  Nanos given_at_ GUARDED_BY(mutex_) = 0;
  Nanos ends_at_ GUARDED_BY(mutex_) = kNever;
  Nanos refresh_at_ GUARDED_BY(mutex_) = kNever;
  bool is_refused_ GUARDED_BY(mutex_) = false;
  std::string failure_ GUARDED_BY(mutex_);  // the last answer of the application, if it was fail()
  int failure_count_ GUARDED_BY(mutex_) = 0;
  int waiting_count_ GUARDED_BY(mutex_) = 0;

  std::weak_ptr<Queue> queue_ GUARDED_BY(mutex_);
  int64_t tag_ GUARDED_BY(mutex_) = 0;
  bool is_asked_ GUARDED_BY(mutex_) = false;  // the tag was posted, and there was no answer yet
  // The next question is not before: with valid credentials, and for a connection without any.
  Nanos patient_at_ GUARDED_BY(mutex_) = 0;
  Nanos urgent_at_ GUARDED_BY(mutex_) = 0;
};

}  // namespace redlatch::runtime
