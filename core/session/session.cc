// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "session/session.h"

#include <algorithm>
#include <new>
#include <utility>

#include "protocol/answer.h"

namespace redlatch::session {

Session::Session(const Settings &settings, Transport &transport, Entropy &entropy, size_t node,
                 Line line)
    : settings_(settings),
      transport_(transport),
      entropy_(entropy),
      node_(node),
      line_(line),
      may_change_server_(settings.has_sentinels() || settings.is_of_cluster),
      failure_(redlatch::failure(Status::kUnavailable,
                                 "not connected to " + settings.address() + " yet")),
      lost_(redlatch::failure(Status::kUnavailable,
                              "lost the connection to " + settings.address())) {}

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
  failure_ = why;
}

void Session::on_disconnected(bool is_to_connect, Nanos now) noexcept {
  state_ = State::kDown;
  connect_at_ = is_to_connect ? now : after(now, reconnect_.next(entropy_.next()));
  failure_.status = lost_.status;
  try {
    failure_.message = lost_.message;
  } catch (const std::bad_alloc &) {
    failure_.message.clear();
  }
}

// Nothing here may fail: what still waited for an answer would be stuck.
void Session::lose_commands(Nanos now) noexcept {
  assert(!is_up());
  // A replica has also refused the commands behind the one whose refusal showed it.
  const bool was_replica = std::exchange(is_at_replica_, false);
  for (size_t count = in_flight_.size(); count > 0; count--) {
    const InFlight in_flight = std::move(in_flight_.front());
    in_flight_.pop_front();
    const Call &call = *in_flight.call;
    try {
      was_replica &&call.is_repeated() ? call.on_not_done(in_flight, now)
                                       : call.on_lost(in_flight, now);
    } catch (...) {
      continue;  // its flags are set; its timers or the next connection continue
    }
  }
}

void Session::drop() {
  state_ = State::kBroken;
  line_ == Line::kMain ? transport_.drop_link(node_) : transport_.drop_side(node_);
}

void Session::connect_soon(Nanos now) {
  if (is_down()) connect_at_ = std::min(connect_at_, now);
}

// ---- commands ----------------------------------------------------------------------------------

void Session::send(protocol::Command &command, InFlight in_flight) {
  in_flight_.push_back(std::move(in_flight));
  try {
    line_ == Line::kMain ? transport_.send(node_, command.argv())
                         : transport_.send_on_side(node_, command.argv());
  } catch (...) {
    in_flight_.pop_back();
    throw;
  }
}

bool Session::try_send(protocol::Command &command, InFlight in_flight) noexcept {
  try {
    send(command, std::move(in_flight));
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
  const InFlight in_flight = std::move(in_flight_.front());
  in_flight_.pop_front();
  const Call &call = *in_flight.call;
  const bool is_replica = !settings_.is_of_cluster && protocol::is_of_replica(reply);
  if (is_replica && call.is_for_primary()) {
    leave_replica(now);
    if (call.is_repeated()) return call.on_not_done(in_flight, now);
  }
  if (!reply.is_error()) {
    repetition_.reset();
    // A replica answers commands that write nothing. The pauses between connections to it grow.
    if (is_up() && now >= keeps_pauses_until_) reconnect_.reset();
  }
  const bool is_redirected =
      reply.is_error() && settings_.is_of_cluster && call.is_redirected(in_flight, reply, now);
  if (!is_redirected) deliver(in_flight, reply, now);
}

void Session::deliver(const InFlight &in_flight, const Reply &reply, Nanos now) {
  const bool is_digest = in_flight.eval == protocol::EvalMode::kDigest;
  if (is_digest && protocol::is_unknown_script(reply)) {
    return in_flight.call->on_unknown_script(in_flight, now);
  }
  in_flight.call->on_answer(in_flight, reply, now);
}

Nanos Session::late_at(Nanos limit) const {
  if (!is_up() || in_flight_.empty()) return kNever;
  return after(in_flight_.front().sent_at, limit);
}

}  // namespace redlatch::session
