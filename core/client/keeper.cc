// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Client, part 3 of 3: the library's own thread.
#include <algorithm>
#include <new>

#include "base/log.h"
#include "client/client.h"
#include "client/handshake.h"
#include "client/threads.h"

namespace redlatch::client {

void Client::start_keeper() {
  const int error = start_thread(keeper_thread_, keeper_main, this);
  if (error != 0) throw NoThread(error);
  has_keeper_ = true;
}

void *Client::keeper_main(void *client) {
  pthread_setname_np(pthread_self(), "redlatch");
  static_cast<Client *>(client)->keep();
  return nullptr;
}

void Client::keep() {
  Lock lock(mutex_);
  while (!is_stopping_) {
    if (is_broken_ && driver_ == nullptr) {
      driver_ = &keeper_;
      disconnect(lock);
      driver_ = nullptr;
    }
    if (attempt_ && attempt_->is_over) end_attempt(lock);
    if (!attempt_ && engine_->begin_connect(0, boot_now())) start_attempt();
    tick(lock);
    io::Watch::Seen seen;
    const uint64_t watched = connection_count_;
    poll_as(lock, keeper_, [&] { seen = keeper_watch_.wait(keeper_wakes_at_); });
    act_on(lock, keeper_, seen, watched);
    if (seen.is_second_ready) read_messages(lock);
    wake_all(lock);
  }
  if (!attempt_) return;
  lock.unlock();
  pthread_join(attempt_->thread, nullptr);
  lock.lock();
  attempt_.reset();
}

// Run what is due, and find out when to wake next.
void Client::tick(Lock &lock) {
  read_what_is_left(lock);
  const Nanos now = boot_now();
  run_timers(now);
  if (reader_) flush(lock);
  end_turn(lock);
  keeper_wakes_at_ = engine_->next_due();
  // While commands come and go, each moves the time at which its answer would be late; looking once
  // per limit costs less than being told each time.
  if (was_active_) keeper_wakes_at_ = std::min(keeper_wakes_at_, now + settings_.timeout);
  was_active_ = false;
}

// A reader may be late. An answer that has come in time must not count as late because of that.
void Client::read_what_is_left(Lock &lock) {
  while (reader_ && driver_ == nullptr && is_connected_ && !is_broken_) {
    if (!read_once(lock, keeper_)) return;
  }
}

void Client::run_timers(Nanos now) {
  try {
    engine_->on_timer(now);
  } catch (const std::bad_alloc &) {
    drop_link(0);  // what was due is looked at again when connected
  }
}

void Client::call_keeper_in_time() {
  if (engine_->next_due() < keeper_wakes_at_) wake(keeper_);
}

void Client::start_attempt() {
  attempt_.emplace();
  const int error = start_thread(attempt_->thread, attempt_main, this);
  if (error == 0) return;
  attempt_.reset();
  try {
    engine_->on_connect_failed(0, no_thread(error), boot_now());
  } catch (const std::bad_alloc &) {
    return;  // the next attempt is due all the same
  }
}

void *Client::attempt_main(void *client) {
  pthread_setname_np(pthread_self(), "redlatch-dial");
  static_cast<Client *>(client)->attempt();
  return nullptr;
}

// Nobody else touches what it makes before it is over.
void Client::attempt() {
  Line line;
  Outcome outcome;
  try {
    outcome = open_line(settings_, engine_->channel(), membership_.get(), stop_event_.fd(), line,
                        engine_->needs_identity());
  } catch (const std::bad_alloc &) {
    outcome.status = Status::kNoMemory;
  }
  Lock lock(mutex_);
  attempt_->line = std::move(line);
  attempt_->outcome = std::move(outcome);
  attempt_->is_over = true;
  wake(keeper_);
  wake_all(lock);
}

void Client::end_attempt(Lock &lock) {
  lock.unlock();
  pthread_join(attempt_->thread, nullptr);
  lock.lock();
  Line line = std::move(attempt_->line);
  const Outcome outcome = std::move(attempt_->outcome);
  attempt_.reset();
  try {
    if (outcome.ok()) {
      connection_ = std::move(line.commands);
      messages_ = std::move(line.messages);
      is_connected_ = true;
      connection_count_++;
      watch_.add(connection_->fd());
      keeper_watch_.add(connection_->fd());
      if (reader_) reader_->add_socket(connection_->fd());
      is_drained_ = false;
      if (messages_) keeper_watch_.add_second(messages_->fd());
      engine_->on_connected(0, line.facts, boot_now());
    } else {
      engine_->on_connect_failed(0, outcome, boot_now());
    }
    // Last: the words about it may fail for want of memory.
    note_connection(outcome, line.facts);
  } catch (const std::bad_alloc &) {
    drop_link(0);
  }
}

// With RESP2. Only the keeper reads and replaces this connection, so no role is needed; a thread
// that disconnects shuts it, and it ends here.
void Client::read_messages(Lock &lock) {
  if (!messages_) return;
  std::vector<io::ReplyPtr> replies;
  lock.unlock();
  const auto received = messages_->receive(replies);
  lock.lock();
  try {
    const Nanos now = boot_now();
    for (const io::ReplyPtr &reply : replies) take_message(*reply, now);
  } catch (const std::bad_alloc &) {
    drop_link(0);
  }
  if (received != io::Connection::Received::kEnded) return;
  // Without messages the waits of this client would be slow: both connections or none.
  messages_.reset();
  if (is_connected_) drop_link(0);
}

// Said once for each change: an outage of an hour is one line.
void Client::note_connection(const Outcome &outcome, const engine::ServerFacts &facts) {
  if (!outcome.ok()) {
    if (!is_away_) log(LogLevel::kWarning, outcome.message);
    is_away_ = true;
    return;
  }
  if (is_away_) log(LogLevel::kInfo, "connected to " + settings_.address() + " again");
  is_away_ = false;
  std::string delivery = "push";
  if (!facts.is_push_trusted) delivery = "poll: " + facts.why_not_trusted;
  if (delivery != delivery_ && !facts.is_push_trusted) {
    log(LogLevel::kWarning, "waiting by polling, which is slower: " + facts.why_not_trusted);
  }
  delivery_ = std::move(delivery);
}

}  // namespace redlatch::client
