// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Redlock, part 2 of 2: the loop, the keeper, and connecting.
#include <algorithm>
#include <new>
#include <utility>

#include "base/log.h"
#include "client/redlock.h"
#include "client/threads.h"

namespace redlatch::client {

namespace {

// Messages of a server with RESP2 come on a socket of their own, with this added to its number.
constexpr uint32_t kMessages = 1000;

}  // namespace

// ---- the loop ----------------------------------------------------------------------------------

// Once round: send, poll until `limit` or the next timer, read. Only the driver.
void Redlock::turn(Lock &lock, Waiter &me, Nanos limit) {
  arm_keeper(false);
  end_attempts(lock);
  disconnect_broken();
  tick(boot_now());
  flush(lock);
  wake_all(lock);
  // Others may have added something meanwhile.
  const Nanos until = has_output() ? 0 : std::min(limit, quorum_->next_due());
  ready_.clear();
  poll_as(lock, me, [&] {
    me.is_interrupted = !poller_.wait(until, ready_);
    read_ready();
  });
  const Nanos now = boot_now();
  for (const auto &ready : ready_) {
    Node &node = nodes_[ready.key % kMessages];
    if (!ready.has_room || !node.is_connected) continue;
    node.is_clogged = false;
    poller_.await_room(node.commands->fd(), ready.key, false);
  }
  for (const Node &node : nodes_) take_in(node.index, now);
  if (drain_waiter_ != nullptr && drain_waiter_ != &me) wake(*drain_waiter_);
}

// Without the mutex.
void Redlock::read_ready() {
  for (const auto &ready : ready_) {
    Node &node = nodes_[ready.key % kMessages];
    const bool is_message = ready.key >= kMessages;
    io::Connection *connection = is_message ? node.messages.get() : node.commands.get();
    if (connection == nullptr || !ready.is_readable) continue;
    auto &replies = is_message ? node.pushes : node.replies;
    if (connection->receive(replies) == io::Connection::Received::kEnded) node.is_ended = true;
  }
}

// Send what is there. Nobody waits for a socket that takes no more.
void Redlock::flush(Lock &lock) {
  if (!has_output()) return;
  for (Node &node : nodes_) {
    if (node.is_connected && node.sending.empty()) node.sending.swap(node.out);
  }
  lock.unlock();
  for (Node &node : nodes_) {
    if (node.sending.empty() || !node.commands || node.is_clogged) continue;
    const auto sent = node.commands->send(node.sending);
    if (!sent) node.commands->shut();  // reading finds the end
    node.sending.erase(0, sent.value_or(node.sending.size()));
  }
  lock.lock();
  for (Node &node : nodes_) {
    if (node.sending.empty() || node.is_clogged || !node.is_connected) continue;
    node.is_clogged = true;
    poller_.await_room(node.commands->fd(), static_cast<uint32_t>(node.index), true);
  }
}

bool Redlock::has_output() const {
  return std::any_of(nodes_.begin(), nodes_.end(), [](const Node &node) {
    return node.is_connected && !node.is_broken && !node.is_clogged &&
           !(node.out.empty() && node.sending.empty());
  });
}

void Redlock::take_in(size_t index, Nanos now) {
  Node &node = nodes_[index];
  if (!node.is_connected) return;
  if (std::exchange(node.is_ended, false)) node.is_broken = true;
  try {
    const auto take_message = [&](const Reply &reply) {
      const std::string_view kind = reply.at(0).text();
      if (kind == "message" || kind == "smessage") {
        return quorum_->on_push(index, reply.at(2).text(), now);
      }
      if (kind != "invalidate") return;
      const Reply &keys = reply.at(1);
      if (keys.kind == Reply::Kind::kNil) return quorum_->on_all_invalidated(index, now);
      for (size_t i = 0; i < keys.count(); i++) {
        quorum_->on_invalidated(index, keys.at(i).text(), now);
      }
    };
    for (const auto &reply : node.replies) {
      const bool is_push = reply->kind == Reply::Kind::kPush;
      is_push ? take_message(*reply) : quorum_->on_reply(index, *reply, now);
    }
    for (const auto &reply : node.pushes) take_message(*reply);
  } catch (const std::bad_alloc &) {
    drop_link(index);  // an answer was lost: as if the connection had broken here
  }
  node.replies.clear();
  node.pushes.clear();
}

// What is due. Who waits drives, and must not lose its place: nothing is thrown.
void Redlock::tick(Nanos now) noexcept {
  if (quorum_->next_due() > now) return;
  try {
    quorum_->on_timer(now);
  } catch (const std::bad_alloc &) {
    for (size_t i = 0; i < nodes_.size(); i++) drop_link(i);  // all is looked at when connected
  }
  for (Node &node : nodes_) {
    if (node.is_trying || is_stopping_ || !quorum_->begin_connect(node.index, now)) continue;
    try {
      start_attempt(node);
    } catch (const std::bad_alloc &) {
      continue;  // the next attempt is due all the same
    }
  }
}

void Redlock::disconnect(size_t index) {
  Node &node = nodes_[index];
  node.is_connected = false;
  node.is_broken = false;
  node.is_ended = false;
  node.is_clogged = false;
  node.out.clear();
  node.sending.clear();
  node.replies.clear();
  node.pushes.clear();
  node.commands.reset();
  node.messages.reset();
  quorum_->on_disconnected(index, boot_now());
}

void Redlock::disconnect_broken() {
  for (const Node &node : nodes_) {
    if (node.is_broken) disconnect(node.index);
  }
}

// The loop goes to who sleeps longest; to the keeper if nobody does.
void Redlock::leave_loop(Lock &lock, Waiter &me) {
  if (driver_ != &me) return;
  while (has_output()) flush(lock);
  driver_ = nullptr;
  if (is_shut_ && is_stopping_) return disconnect_broken();
  if (Waiter *next = sleepers_.front(); next != nullptr) {
    sleepers_.remove(*next);
    driver_ = next;
    return wake(*next);
  }
  arm_keeper(true);
  // Who only sends does not see to these.
  const bool has_chores = std::any_of(nodes_.begin(), nodes_.end(), [](const Node &node) {
    return node.is_broken || (node.is_trying && node.is_over);
  });
  if (has_chores) wake(keeper_);
  call_in_time();
}

void Redlock::arm_keeper(bool is_on) {
  if (is_armed_ != is_on) keeper_watch_.arm(poller_.fd(), is_on);
  is_armed_ = is_on;
}

// Whoever polls does so no longer than until the next timer.
void Redlock::call_in_time() {
  if (driver_ == &keeper_) return;
  if (driver_ != nullptr) {
    if (driver_->is_polling) wake(*driver_);
    return;
  }
  if (quorum_->next_due() < keeper_wakes_at_) wake(keeper_);
}

bool Redlock::is_in_flight() const {
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [this](const Node &node) { return quorum_->in_flight_count(node.index) > 0; });
}

// ---- the keeper --------------------------------------------------------------------------------

void Redlock::start_keeper() {
  const int error = start_thread(keeper_thread_, keeper_main, this);
  if (error != 0) throw NoThread(error);
  has_keeper_ = true;
}

void *Redlock::keeper_main(void *redlock) {
  pthread_setname_np(pthread_self(), "redlatch");
  static_cast<Redlock *>(redlock)->keep();
  return nullptr;
}

void Redlock::keep() {
  Lock lock(mutex_);
  while (!is_stopping_) {
    if (driver_ == nullptr) {
      driver_ = &keeper_;
      turn(lock, keeper_, 0);
      leave_loop(lock, keeper_);
      // A turn takes no notice of being woken, and lets go of the mutex.
      if (is_stopping_) break;
    }
    // Who drives sees to the timers. While commands come and go each moves the time at which its
    // answer would be late; looking once per limit costs less than being told each time.
    const Nanos now = boot_now();
    keeper_wakes_at_ = driver_ != nullptr ? now + timeout_ : quorum_->next_due();
    const bool is_busy = quorum_->expects_push() || is_in_flight();
    if (is_busy) keeper_wakes_at_ = std::min(keeper_wakes_at_, now + timeout_);
    wake_all(lock);
    poll_as(lock, keeper_, [&] { keeper_watch_.wait(keeper_wakes_at_); });
  }
  for (Node &node : nodes_) {
    if (!std::exchange(node.is_trying, false)) continue;
    const pthread_t thread = node.thread;
    lock.unlock();
    pthread_join(thread, nullptr);
    lock.lock();
  }
}

// ---- connecting --------------------------------------------------------------------------------

void Redlock::start_attempt(Node &node) {
  node.is_trying = true;
  node.is_over = false;
  const int error = start_thread(node.thread, attempt_main, &node);
  if (error == 0) return;
  node.is_trying = false;
  quorum_->on_connect_failed(node.index, no_thread(error), boot_now());
}

void *Redlock::attempt_main(void *node) {
  pthread_setname_np(pthread_self(), "redlatch-dial");
  auto &mine = *static_cast<Node *>(node);
  mine.redlock->attempt(mine);
  return nullptr;
}

// Nobody else touches what it makes before it is over.
void Redlock::attempt(Node &node) {
  const Settings &settings = node_settings_[node.index];
  Line line;
  Outcome outcome;
  try {
    outcome = open_line(settings, quorum_->channel(), node.membership.get(), stop_event_.fd(), line,
                        quorum_->needs_identity());
  } catch (const std::bad_alloc &) {
    outcome.status = Status::kNoMemory;
  }
  Lock lock(mutex_);
  node.line = std::move(line);
  node.outcome = std::move(outcome);
  node.is_over = true;
  wake(driver_ != nullptr ? *driver_ : keeper_);
  wake_all(lock);
}

void Redlock::end_attempts(Lock &lock) {
  for (Node &node : nodes_) {
    if (!node.is_trying || !node.is_over) continue;
    node.is_trying = false;  // first: a thread is joined once
    Line line = std::move(node.line);
    const Outcome outcome = std::move(node.outcome);
    const pthread_t thread = node.thread;
    lock.unlock();
    pthread_join(thread, nullptr);
    lock.lock();
    try {
      if (outcome.ok()) {
        node.commands = std::move(line.commands);
        node.messages = std::move(line.messages);
        node.is_connected = true;
        const auto key = static_cast<uint32_t>(node.index);
        poller_.add(node.commands->fd(), key);
        if (node.messages) poller_.add(node.messages->fd(), key + kMessages);
        quorum_->on_connected(node.index, line.facts, boot_now());
      } else {
        quorum_->on_connect_failed(node.index, outcome, boot_now());
      }
      note_connection(node, outcome);
    } catch (const std::bad_alloc &) {
      drop_link(node.index);
    }
  }
}

// Said once for each change: an outage of an hour is one line.
void Redlock::note_connection(Node &node, const Outcome &outcome) {
  if (!outcome.ok() && !node.is_away) log(LogLevel::kWarning, outcome.message);
  if (outcome.ok() && node.is_away) {
    log(LogLevel::kInfo, "connected to " + node_settings_[node.index].address() + " again");
  }
  node.is_away = !outcome.ok();
}

}  // namespace redlatch::client
