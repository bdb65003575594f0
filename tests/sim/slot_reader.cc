// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "slot_reader.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "client.h"
#include "cluster.h"
#include "memory.h"
#include "reply_view.h"

namespace redlatch::sim {

using protocol::Handshake;

void SlotReader::begin(std::vector<HostPort> servers) {
  is_reading_ = true;
  servers_ = std::move(servers);
  next_ = 0;
  failure_ = {};
  end_ = after(client_.now(), settings_.connect_timeout);
  next();
}

// Each server has its part of the time that is left.
void SlotReader::next() {
  hang_up(Network::Ending::kSoon);
  is_reading_ = next_ < servers_.size();
  if (!is_reading_) return client_.on_no_slots(failure_);
  const Nanos now = client_.now();
  const auto shares = static_cast<Nanos>(servers_.size() - next_);
  const Nanos limit = now + std::max<Nanos>((end_ - now) / shares, kMs);
  server_settings_ = settings_.of_node(servers_[next_]);
  next_++;
  const Nanos way = context_.network.delay() + context_.network.delay();
  client_.later(way, [this, attempt = attempt_] {
    if (attempt_ == attempt) dialled();
  });
  const Nanos left = std::max<Nanos>(client_.when(limit) - context_.schedule.now(), 0);
  client_.later(left, [this, attempt = attempt_] {
    if (attempt_ == attempt) fail(failure(Status::kUnavailable, "no answer within the time limit"));
  });
}

void SlotReader::dialled() {
  const size_t number = server_at({server_settings_.host, ""});
  if (client_.is_parted(number)) return;
  Server &server = *context_.servers[number];
  link_ = context_.network.open(*this, server);
  if (!server.accept(link_)) {
    return fail(failure(Status::kUnavailable, "the server is not reachable"));
  }
  {
    const CoreMemory::Scope scope;
    handshake_.emplace(Handshake::for_slots(server_settings_));
  }
  step([](Handshake &handshake, const Handshake::Send &send) { handshake.start(send); });
}

// Every event of a handshake goes through here.
template <class Event>
void SlotReader::step(const Event &event) {
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
    context_.verdict.broken("a handshake for the slots is legal", broken);
  }
  if (!out.empty()) context_.network.send_up(link_, std::move(out));
  if (handshake_->stage() != Handshake::Stage::kOver) return;
  const Outcome outcome = handshake_->outcome();
  {
    const CoreMemory::Scope scope;
    handshake_.reset();
  }
  outcome.ok() ? ask() : fail(outcome);
}

void SlotReader::ask() {
  CommandList out;
  protocol::ask_slots([&out](Argv argv) { out.emplace_back(argv); });
  context_.network.send_up(link_, std::move(out));
}

void SlotReader::take(const Message &message) {
  if (message.kind != Message::Kind::kReply) return;
  if (handshake_) {
    const ReplyView view(message.value);
    return step([&](Handshake &handshake, const Handshake::Send &send) {
      handshake.on_reply(view.get(), send, client_.now());
    });
  }
  answers_.push_back(message.value);
  if (answers_.size() < protocol::kSlotQuestions) return;
  const ReplyView info(answers_[0]), slots(answers_[1]);
  std::vector<protocol::SlotRange> ranges;
  const auto outcome =
      protocol::read_cluster(protocol::is_cut_off(info.get()), slots.get(),
                             {server_settings_.host, server_settings_.port}, ranges);
  if (!outcome.ok()) return fail(outcome);
  hang_up(Network::Ending::kSoon);
  is_reading_ = false;
  client_.on_slots(std::move(ranges));
}

void SlotReader::fail(const Outcome &why) {
  failure_ = why;
  next();
}

void SlotReader::received(uint64_t id, Messages messages) {
  if (id != link_) return;
  if (client_.is_paused()) {
    auto shared = std::make_shared<Messages>(std::move(messages));
    return client_.later(0, [this, id, shared] { received(id, std::move(*shared)); });
  }
  for (const Message &message : messages) {
    if (id == link_) take(message);
  }
}

void SlotReader::closed(uint64_t id) {
  if (id != link_) return;
  if (client_.is_paused()) return client_.later(0, [this, id] { closed(id); });
  fail(failure(Status::kUnavailable, "the connection was closed by the server"));
}

void SlotReader::hang_up(Network::Ending ending) {
  if (link_ != 0) context_.network.close(std::exchange(link_, 0), ending);
  attempt_++;
  answers_.clear();
  const CoreMemory::Scope scope;
  handshake_.reset();
}

}  // namespace redlatch::sim
