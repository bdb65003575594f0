// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// LockClient: requests and holds when the connection is made or lost.
#include <algorithm>
#include <new>
#include <utility>

#include "lock/calls.h"

namespace redlatch::lock {

// A request that may not wait skips the pause between two attempts.
void LockClient::connect_soon(Nanos now) {
  if (link_ == LinkState::kDown) connect_at_ = std::min(connect_at_, now);
}

bool LockClient::begin_connect(size_t, Nanos now) {
  if (link_ != LinkState::kDown || !has_work() || now < connect_at_) return false;
  // A client of a cluster draws one in a slot of the node.
  if (is_channel_taken_ && !settings_.is_of_cluster) draw_channel(now);
  link_ = LinkState::kConnecting;
  return true;
}

// The server still counts an earlier connection of this client as a receiver, and would, while that
// one is not noticed as dead: without another channel this client would poll for as long as it is
// connected now. A count that is wrong for new channels, too, is that of a broken proxy.
bool LockClient::leaves_channel(const ServerFacts &facts) {
  constexpr int kMostChannels = 4;
  if (facts.is_push_trusted) taken_count_ = 0;
  is_channel_taken_ = facts.is_channel_taken && taken_count_ < kMostChannels;
  if (!is_channel_taken_) return false;
  taken_count_++;
  is_push_trusted_ = is_counted_ = false;
  link_ = LinkState::kBroken;
  output_.drop_link(node_);
  return true;
}

// Without memory the next attempt to connect does it.
void LockClient::draw_channel(Nanos now) noexcept {
  try {
    entropy_.mix_into(random_);
    change_channel(protocol::make_cid(random_), now);
    is_channel_taken_ = false;
  } catch (const std::bad_alloc &) {
    return;
  }
}

namespace {

// True if PUBLISH counts each subscriber that its message reaches. The probe has shown that a proxy
// does not. In a cluster a plain message reaches subscribers at all nodes, but PUBLISH counts only
// those at its own.
bool is_counted(const ServerFacts &facts, bool is_of_cluster) {
  if (!facts.is_push_trusted) return false;
  return !is_of_cluster || facts.is_sharded;
}

}  // namespace

void LockClient::on_connected(size_t, const ServerFacts &facts, Nanos now) {
  if (leaves_channel(facts)) return;
  link_ = LinkState::kUp;
  is_wanted_ = false;
  features_.is_sharded = facts.is_sharded;
  is_push_trusted_ = facts.is_push_trusted;
  is_counted_ = is_counted(facts, settings_.is_of_cluster);
  if (facts.has_messages) message_check_.give(&MessageCheck::open, settings_.command_timeout, now);
  can_track_ = facts.can_track;
  may_announce_ = true;
  announce_again_at_ = 0;
  if (const ServerAge &age = facts.age; settings_.is_of_cluster && age.round_trip > 0) {
    clock_offset_.sample(age.asked_at, age.asked_at + age.round_trip, age.time() / kMs);
    note_clock(now);
  }
  if (!records_.empty()) announce_held(now);
  const bool is_channel_new = std::exchange(is_channel_new_, false);
  if (settings_.is_of_cluster || is_channel_new) {
    resume_all(now);
  } else {
    for_each_record([&](TokenRecord &record) { resume(record, now); });
  }
  for_each_immediate([&](const std::shared_ptr<Request> &request) {
    const bool is_done = request->op == Request::Op::kForce && request->is_sent;
    const LockState *lock = moving_.empty() ? nullptr : lock_of(*request);
    const bool is_moved = lock != nullptr && is_moving(*lock);
    if (!is_done && !is_moved) send_request(request, now);
  });
}

// The commands that `record` needs on a server that it was not connected to just before.
void LockClient::resume(TokenRecord &record, Nanos now) {
  record.watcher.on_connected();
  if (may_change_server_) note_new_server(record);
  switch (record.phase) {
    case Phase::kAsking:
    case Phase::kQueued:
      return ask(record, now);
    case Phase::kHeld:
      // The server may have restarted without its data: better to know at once.
      send_extend(record, record.held()->on_connected(now), now);
      if (record.phase == Phase::kHeld) confirm_again(record);
      return resume_upgrade(record, now);
    case Phase::kDetaching:
      return;  // its request is sent again
    case Phase::kCleanup:
      return on_record_due(record, now);  // which ends it, however often the connection breaks
  }
}

// A new primary may have the place of a token in its queue, and not the grant: it would grant the
// lock to a token that has ended.
void LockClient::note_new_server(TokenRecord &record) {
  record.acquisition.give(&Acquisition::on_new_server);
  if (Checked<Cleanup> *cleanup = record.started_cleanup()) cleanup->give(&Cleanup::on_new_server);
}

bool LockClient::is_about_lease(const Request &request) {
  return request.op == Request::Op::kExtend || request.op == Request::Op::kDowngrade ||
         request.op == Request::Op::kRaiseFence || request.op == Request::Op::kDetach;
}

void LockClient::on_connect_failed(size_t, const Outcome &why, Nanos now) {
  link_ = LinkState::kDown;
  is_wanted_ = false;
  connect_at_ = after(now, reconnect_.next(entropy_.next()));
  link_failure_ = why;
  const bool may_pass = why.status == Status::kUnavailable || why.status == Status::kServer;
  if (!may_pass) return fail_all(why.status, why.message, now);
  for_each_immediate([&](const std::shared_ptr<Request> &request) {
    const bool has_wait =
        request->op == Request::Op::kConnect || request->op == Request::Op::kCheck;
    if (is_about_lease(*request) || (has_wait && request->wait_ms != 0)) return;
    finish_immediate(*request, request->is_sent ? Status::kOutcomeUnknown : why.status,
                     why.message);
  });
  for_each_record([&](TokenRecord &record) {
    const bool is_one_try = record.phase == Phase::kAsking && !record.acquisition->is_queueable();
    if (is_one_try) return fail_callers(record, why.status, why.message, now);
    const bool is_tried = record.confirmer && record.confirmer->wait_ms == 0;
    if (is_tried) fail_confirmation(record, why.status, why.message, now);
  });
}

// Waiting longer would not help.
void LockClient::fail_all(Status status, std::string_view message, Nanos now) {
  while (!immediate_.empty()) finish_immediate(*immediate_.front(), status, message);
  for_each_record([&](TokenRecord &record) {
    const bool is_waiting = record.phase == Phase::kAsking || record.phase == Phase::kQueued;
    if (is_waiting) fail_callers(record, status, message, now);
    if (record.confirmer) return fail_confirmation(record, status, message, now);
    if (record.upgrader) give_up_upgrade(record, status, message, now);
  });
}

// Nothing here may fail: a record that still waited for an answer would be stuck.
void LockClient::on_disconnected(size_t, Nanos now) noexcept {
  link_ = LinkState::kDown;
  connect_at_ = is_channel_taken_ ? now : after(now, reconnect_.next(entropy_.next()));
  clock_offset_.forget();
  is_clock_known_ = is_clock_warned_ = false;
  check_at_ = kNever;
  message_check_.give(&MessageCheck::close);
  is_tracking_ = false;
  drop_side();
  for (const auto &[id, record] : records_) record->confirmed_by = 0;
  for (const auto &record : throttled_) record->is_throttled = false;
  throttled_.clear();
  for (const auto &[name, lock] : names_) lock->key_watch.give(&KeyWatch::on_disconnected);
  link_failure_.status = link_lost_.status;
  try {
    link_failure_.message = link_lost_.message;
  } catch (const std::bad_alloc &) {
    link_failure_.message.clear();
  }
  const size_t count = in_flight_.size();
  // A replica has also refused the commands behind the one whose refusal showed it.
  const bool was_replica = std::exchange(is_at_replica_, false);
  for (size_t i = 0; i < count; i++) {
    const InFlight in_flight = std::move(in_flight_.front());
    in_flight_.pop_front();
    try {
      const bool is_done = !was_replica || !Calls::is_cleanup(in_flight);
      is_done ? in_flight.call->on_lost(*this, in_flight, now)
              : in_flight.call->on_not_done(*this, in_flight, now);
    } catch (...) {
      continue;  // its flags are set; its timers or the next connection continue
    }
  }
}

// The server's clock was compared with the local one.
void LockClient::note_clock(Nanos now) {
  const auto offset = settings_.is_of_cluster ? clock_offset_.offset(now) : std::nullopt;
  if (!offset) return;
  last_offset_ = offset;
  is_clock_known_ = true;
  if (has_arrivals_) compare_clocks(now);
}

// A lease that has moved here is believed for as long as both servers keep it.
void LockClient::compare_clocks(Nanos now) noexcept {
  has_arrivals_ = false;
  warn_of_clock();
  for (const auto &[id, record] : records_) {
    if (record->phase != Phase::kHeld || !record->held()->awaits_clock()) continue;
    record->held().give(&HeldLease::on_clock, *last_offset_, now);
    schedule(*record, now);
  }
}

// Once for each connection, however many slots move.
void LockClient::warn_of_clock() noexcept {
  const Nanos behind = source_offset_ ? *source_offset_ - *last_offset_ : 0;
  if (behind <= timing::kClockLimit || std::exchange(is_clock_warned_, true)) return;
  try {
    output_.warn("the clock of " + settings_.address() + " is " + std::to_string(behind / kMs) +
                 " ms behind that of the node that had its locks before: fences may fall");
  } catch (const std::bad_alloc &) {
    is_clock_warned_ = false;
  }
}

}  // namespace redlatch::lock
