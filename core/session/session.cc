// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "session/session.h"

#include <algorithm>
#include <new>
#include <utility>

#include "protocol/answer.h"
#include "session/words.h"

namespace redlatch::session {

Session::Session(const Settings &settings, Transport &transport, Entropy &entropy, size_t node,
                 Connection connection)
    : settings_(settings),
      transport_(transport),
      entropy_(entropy),
      node_(node),
      connection_(connection),
      may_change_server_(settings.has_sentinels() || settings.is_of_cluster),
      failure_(redlatch::failure(Status::kUnavailable, words::not_connected_yet(settings))),
      lost_(redlatch::failure(Status::kUnavailable, words::lost_connection(settings))) {
  if (lost_.message.empty()) throw std::bad_alloc();
}

// ---- the connection ----------------------------------------------------------------------------

bool Session::begin_connect(Nanos now) {
  if (!is_down() || now < connect_at_) return false;
  assert(in_flight_.empty());
  state_ = State::kConnecting;
  return true;
}

void Session::on_connect_failed(const Outcome &why, Nanos now) {
  state_ = State::kDown;
  connect_at_ = after(now, reconnect_.next(entropy_.next()));
  if (connection_ == Connection::kCommands) failure_ = why;
}

// Nothing here may fail: a call that still waited for its answer would be stuck.
void Session::on_disconnected(bool skips_pause, Nanos now) noexcept {
  state_ = State::kDown;
  messages_.give(&MessageCheck::close);
  connect_at_ = skips_pause ? now : after(now, reconnect_.next(entropy_.next()));
  failure_ = copy_of(lost_);
  // A replica has also refused the calls behind the one whose refusal showed it.
  const bool was_replica = std::exchange(is_at_replica_, false);
  for (size_t count = in_flight_.size(); count > 0; count--) {
    const Call call = std::move(in_flight_.front());
    in_flight_.pop_front();
    const bool is_not_done = was_replica && call.kind->is_repeated();
    try {
      if (is_not_done) {
        call.kind->on_not_done(call, now);
      } else {
        call.kind->on_lost(call, now);
      }
    } catch (...) {
      continue;  // its flags are set; its timers or the next connection continue
    }
  }
  assert(in_flight_.empty());
}

void Session::drop() {
  state_ = State::kBroken;
  connection_ == Connection::kCommands ? transport_.drop_link(node_) : transport_.drop_side(node_);
}

void Session::connect_soon(Nanos now) {
  if (is_down()) connect_at_ = std::min(connect_at_, now);
}

// ---- messages ----------------------------------------------------------------------------------

void Session::open_messages(Nanos now) {
  messages_.give(&MessageCheck::open, settings_.command_timeout, now);
}

void Session::on_late_grant(Nanos age, Nanos now) {
  follow(messages_.give(&MessageCheck::on_late_grant, age, now), words::kNoMessage);
}

void Session::check_messages(bool is_waiting, Nanos now) {
  follow(messages_.give(&MessageCheck::on_time, is_waiting, now), words::kNoAnswer);
}

void Session::follow(MessageCheck::Command command, std::string_view why) {
  if (command == MessageCheck::Command::kNone) return;
  if (command == MessageCheck::Command::kAsk) {
    protocol::Command ping;
    ping.add("PING");
    return transport_.send_on_messages(node_, ping.argv());
  }
  drop();
  transport_.warn(words::messages_dead(settings_, why));
}

// ---- calls --------------------------------------------------------------------------------------

void Session::send(protocol::Command &command, Call call) {
  assert(is_up() || state_ == State::kBroken);
  in_flight_.push_back(std::move(call));
  try {
    connection_ == Connection::kCommands ? transport_.send(node_, command.argv())
                                         : transport_.send_on_side(node_, command.argv());
  } catch (...) {
    in_flight_.pop_back();
    throw;
  }
}

bool Session::try_send(protocol::Command &command, Call call) noexcept {
  try {
    send(command, std::move(call));
    return true;
  } catch (const std::bad_alloc &) {
    return false;
  }
}

// The next connection may lead to the primary: sentinels name it, or the endpoint of a service has
// moved. Waiting acquires and upgrades, renewals and releases are sent again there. Other requests
// end with the refusal.
void Session::leave_replica(Nanos now) {
  may_change_server_ = is_at_replica_ = true;
  keeps_pauses_until_ = now + 1'000 * kMs;  // longer than the longest pause
  drop();
}

void Session::on_reply(const Reply &reply, Nanos now) {
  if (in_flight_.empty()) return drop();
  const Call call = std::move(in_flight_.front());
  in_flight_.pop_front();
  const CallKind &kind = *call.kind;
  const bool is_replica = !settings_.is_of_cluster && protocol::is_of_replica(reply);
  if (is_replica && kind.is_for_primary()) {
    leave_replica(now);
    if (kind.is_repeated()) return kind.on_not_done(call, now);
  }
  if (!reply.is_error()) {
    repetition_.reset();
    // A replica answers commands that write nothing. The pauses between connections to it grow.
    if (is_up() && now >= keeps_pauses_until_) reconnect_.reset();
  }
  const bool is_redirected =
      reply.is_error() && settings_.is_of_cluster && kind.take_redirect(call, reply, now);
  if (!is_redirected) deliver(call, reply, now);
}

void Session::deliver(const Call &call, const Reply &reply, Nanos now) {
  const bool is_digest = call.eval == protocol::EvalMode::kDigest;
  if (is_digest && protocol::is_unknown_script(reply)) {
    return call.kind->on_unknown_script(call, now);
  }
  call.kind->on_answer(call, reply, now);
}

void Session::add_slots(std::set<uint16_t> &slots) const {
  for (const Call &call : in_flight_) {
    if (const auto slot = call.kind->slot(call)) slots.insert(*slot);
  }
}

Nanos Session::late_at(Nanos limit) const {
  if (!is_up() || in_flight_.empty()) return kNever;
  return after(in_flight_.front().sent_at, limit);
}

}  // namespace redlatch::session
