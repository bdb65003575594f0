// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "side.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "client.h"
#include "memory.h"
#include "reply_view.h"

namespace redlatch::sim {

// ---- the output of the service -----------------------------------------------------------------

void Side::send(Argv argv) {
  if (argv[0] != "WAIT") context_.checker.sent(0, client_.slot(), argv);
  out_.emplace_back(argv);
  auth_.on_append();
}

void Side::settle() {
  if (std::exchange(is_dropped_, false)) disconnect();
  CommandList out = std::exchange(out_, {});
  if (is_up_ && !out.empty()) context_.network.send_up(link_, std::move(out));
  if (is_opening()) return;
  {
    const CoreMemory::Scope scope;
    if (!client_.service_->begin_side_connect(0, client_.now())) return;
  }
  open();
}

// ---- opening -----------------------------------------------------------------------------------

// Rule: a server that does not answer at the side is dialled ever more seldom there, too.
void Side::open() {
  if (!redials_.begin(client_.now())) {
    context_.verdict.broken("a server that is away is dialled ever more seldom",
                            "client " + std::to_string(client_.slot()) + " at the side");
  }
  server_ = client_.server_of(0);
  login_.emplace(client_.guide_->follower().primary());
  login_try_ = std::make_unique<LoginTry>(client_, context_, *login_);
  // It may use a later one: then AUTH is sent once more than needed.
  auth_.begin(client_.wallet().login().number);
  go_on();
}

void Side::go_on() {
  const auto stage = login_try_->go_on();
  if (stage == LoginTry::Stage::kWaiting) return;
  if (stage == LoginTry::Stage::kOver) return fail(login_->take_outcome());
  {
    const CoreMemory::Scope scope;
    attempt_.emplace(login_->settings(), client_.now());
  }
  context_.stats.openings++;
  context_.on_opening(client_.slot(), 0);
  watch_limit();
  const Nanos way = context_.network.delay() + context_.network.delay();
  client_.later(way, [this, number = number_] {
    if (attempt_ && number_ == number) dialled();
  });
}

void Side::wake_try() {
  if (login_try_ && !attempt_) go_on();
}

void Side::authenticate() {
  const driver::Login &newest = client_.wallet().login();
  if (!is_up_ || newest.number <= auth_.login()) return;
  auth_.renew(newest, [this](Argv argv) {
    out_.emplace_back(argv);
    auth_.on_append();
  });
}

// A server that is down refuses at once. If it cannot be reached the limit ends the attempt.
void Side::dialled() {
  if (client_.is_parted(server_)) return;
  Server &server = *context_.servers[server_];
  link_ = context_.network.open(*this, server);
  const bool is_accepted = server.accept(link_);
  step([&](driver::SideAttempt &attempt, const driver::Dialogue::Send &send, Nanos now) {
    if (is_accepted) return attempt.on_dialled(send, now);
    attempt.on_failed(failure(Status::kUnavailable, "the server is not reachable"), now);
  });
}

// Every event of an attempt goes through here.
template <class Event>
void Side::step(const Event &event) {
  CommandList out;
  const auto send = [&out](Argv argv) {
    const CoreMemory::Pause pause;
    out.emplace_back(argv);
  };
  {
    const CoreMemory::Scope scope;
    event(*attempt_, driver::Dialogue::Send(send), client_.now());
  }
  if (const char *broken = attempt_->check()) {
    context_.verdict.broken("an attempt at the side is legal", broken);
  }
  if (attempt_->is_over()) return finish();
  if (!out.empty()) context_.network.send_up(link_, std::move(out));
  watch_limit();
}

void Side::finish() {
  login_try_->note_dialled(attempt_->outcome());
  login_->on_dialled(attempt_->outcome(), client_.now());
  if (login_try_->go_on() != LoginTry::Stage::kOver) {
    end_dial(Network::Ending::kSoon);
    return go_on();
  }
  const Outcome outcome = login_->take_outcome();
  if (!outcome.ok()) return fail(outcome);
  attempt_.reset();
  login_try_.reset();
  is_up_ = true;
  out_.clear();
  auth_.clear();
  authenticate();
  context_.trace.say(context_.schedule.now(), "client %d is connected to node %zu at the side",
                     client_.slot(), server_);
  client_.call([](lock::LockService &service, Nanos now) { service.on_side_connected(0, now); });
}

void Side::fail(const Outcome &why) {
  context_.trace.say(context_.schedule.now(),
                     "client %d does not connect to node %zu at the side: %s", client_.slot(),
                     server_, why.message.c_str());
  hang_up(Network::Ending::kSoon);
  client_.later(client_.scheduling(), [this, why] {
    redials_.ended(client_.now(), false);
    client_.call([&why](lock::LockService &service, Nanos now) {
      service.on_side_connect_failed(0, why, now);
    });
  });
}

void Side::watch_limit() {
  if (limit_ == attempt_->limit()) return;
  limit_ = attempt_->limit();
  const Nanos left = std::max<Nanos>(client_.when(limit_) - context_.schedule.now(), 0);
  client_.later(left, [this, number = number_, limit = limit_] {
    if (!attempt_ || number_ != number || attempt_->limit() != limit) return;
    step([](driver::SideAttempt &attempt, const driver::Dialogue::Send &, Nanos now) {
      attempt.on_late(now);
    });
  });
}

// ---- the connection ----------------------------------------------------------------------------

void Side::received(uint64_t id, Messages messages) {
  if (id != link_) return;
  if (client_.is_paused()) {
    auto shared = std::make_shared<Messages>(std::move(messages));
    return client_.later(0, [this, id, shared] { received(id, std::move(*shared)); });
  }
  for (const Message &message : messages) {
    if (id == link_) take(message);
  }
}

void Side::take(const Message &message) {
  const ReplyView view(message.value);
  if (attempt_) {
    if (client_.now() >= attempt_->limit()) return;
    return step([&](driver::SideAttempt &attempt, const driver::Dialogue::Send &send, Nanos now) {
      attempt.on_reply(driver::Dialogue::kCommands, view.get(), send, now);
    });
  }
  if (!is_up_) return;
  if (const uint64_t login = auth_.take(); login != 0) {
    Client::Wire &wire = *client_.wires_.front();
    return client_.note_auth(wire, wire.connection.note_auth(login, view.get()), view.get());
  }
  if (!message.value.is_error()) redials_.may_restart();
  client_.call(
      [&](lock::LockService &service, Nanos now) { service.on_side_reply(0, view.get(), now); });
}

void Side::closed(uint64_t id) {
  if (id != link_) return;
  if (client_.is_paused()) return client_.later(0, [this, id] { closed(id); });
  if (!attempt_) return disconnect();
  step([](driver::SideAttempt &attempt, const driver::Dialogue::Send &, Nanos now) {
    attempt.on_closed({}, now);
  });
}

// The service gets on_side_disconnected() a moment later, as from another thread.
void Side::disconnect() {
  hang_up(Network::Ending::kSoon);
  client_.later(client_.scheduling(), [this] {
    context_.trace.say(context_.schedule.now(), "client %d is disconnected at the side",
                       client_.slot());
    redials_.ended(client_.now(), false);
    client_.call(
        [](lock::LockService &service, Nanos now) { service.on_side_disconnected(0, now); });
  });
}

void Side::hang_up(Network::Ending ending) {
  end_dial(ending);
  login_try_.reset();
  is_up_ = is_dropped_ = false;
}

void Side::end_dial(Network::Ending ending) {
  if (link_ != 0) context_.network.close(std::exchange(link_, 0), ending);
  number_++;
  limit_ = 0;
  attempt_.reset();
}

void Side::part_from(size_t server, Nanos until) {
  if (link_ == 0 || server_ != server) return;
  context_.network.stall(link_, true, until);
  context_.network.stall(link_, false, until);
}

}  // namespace redlatch::sim
