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

using protocol::Handshake;

// ---- the output of the service -----------------------------------------------------------------

void Side::send(Argv argv) {
  if (argv[0] != "WAIT") context_.checker.sent(0, client_.slot(), argv);
  out_.emplace_back(argv);
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

void Side::open() {
  settings_ = client_.wires_.front()->primary;
  server_ = client_.server_of(0);
  {
    const CoreMemory::Scope scope;
    handshake_.emplace(Handshake::for_side(settings_));
  }
  context_.stats.openings++;
  context_.on_opening(client_.slot(), 0);
  set_limit(settings_.connect_timeout);
  const Nanos way = context_.network.delay() + context_.network.delay();
  client_.later(way, [this, attempt = ++attempt_] {
    if (handshake_ && attempt_ == attempt) dialled();
  });
}

// A server that is down refuses at once. If it cannot be reached the limit ends the attempt.
void Side::dialled() {
  if (client_.is_parted(server_)) return;
  Server &server = *context_.servers[server_];
  link_ = context_.network.open(*this, server);
  if (!server.accept(link_)) {
    return fail(failure(Status::kUnavailable, "the server is not reachable"));
  }
  set_limit(settings_.command_timeout);
  step([](Handshake &handshake, const Handshake::Send &send) { handshake.start(send); });
}

// Every event of a handshake goes through here.
template <class Event>
void Side::step(const Event &event) {
  CommandList out;
  const auto send = [&out](Argv argv) {
    const CoreMemory::Pause pause;
    out.emplace_back(argv);
  };
  {
    const CoreMemory::Scope scope;
    event(*handshake_, Handshake::Send(send));
  }
  if (const char *broken = handshake_->check()) {
    context_.verdict.broken("a handshake at the side is legal", broken);
  }
  if (!out.empty()) context_.network.send_up(link_, std::move(out));
  if (handshake_->stage() == Handshake::Stage::kOver) finish();
}

void Side::finish() {
  const Outcome outcome = handshake_->outcome();
  if (!outcome.ok()) return fail(outcome);
  if (handshake_->facts().role == NodeRole::kReplica) {
    return fail(failure(Status::kServer, "the server is a replica"));
  }
  limit_number_++;
  handshake_.reset();
  is_up_ = true;
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
    client_.call([&why](lock::LockService &service, Nanos now) {
      service.on_side_connect_failed(0, why, now);
    });
  });
}

void Side::set_limit(Nanos timeout) {
  const Nanos left = client_.when(after(client_.now(), timeout)) - context_.schedule.now();
  client_.later(std::max<Nanos>(left, 0), [this, number = ++limit_number_] {
    if (!handshake_ || limit_number_ != number) return;
    fail(failure(Status::kUnavailable, "no answer within the time limit"));
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
  if (handshake_) {
    return step([&](Handshake &handshake, const Handshake::Send &send) {
      handshake.on_reply(view.get(), send, client_.now());
    });
  }
  if (!is_up_) return;
  client_.call(
      [&](lock::LockService &service, Nanos now) { service.on_side_reply(0, view.get(), now); });
}

void Side::closed(uint64_t id) {
  if (id != link_) return;
  if (client_.is_paused()) return client_.later(0, [this, id] { closed(id); });
  if (!handshake_) return disconnect();
  fail(failure(Status::kUnavailable, "the connection was closed by the server"));
}

// The service gets on_side_disconnected() a moment later, as from another thread.
void Side::disconnect() {
  hang_up(Network::Ending::kSoon);
  client_.later(client_.scheduling(), [this] {
    context_.trace.say(context_.schedule.now(), "client %d is disconnected at the side",
                       client_.slot());
    client_.call(
        [](lock::LockService &service, Nanos now) { service.on_side_disconnected(0, now); });
  });
}

void Side::hang_up(Network::Ending ending) {
  if (link_ != 0) context_.network.close(std::exchange(link_, 0), ending);
  limit_number_++;
  handshake_.reset();
  is_up_ = is_dropped_ = false;
}

void Side::part_from(size_t server, Nanos until) {
  if (link_ == 0 || server_ != server) return;
  context_.network.stall(link_, true, until);
  context_.network.stall(link_, false, until);
}

}  // namespace redlatch::sim
