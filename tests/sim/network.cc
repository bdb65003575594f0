// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "network.h"

#include <algorithm>

namespace redlatch::sim {

namespace {

constexpr Nanos kLongSpike = 4'000 * kMs;
constexpr Nanos kLatest = 5'000 * kMs;

}  // namespace

Network::Network(const Plan &plan, Schedule &schedule, Stats &stats)
    : plan_(plan), schedule_(schedule), stats_(stats), random_(plan.seed, 1) {}

uint64_t Network::open(ClientEnd &client, ServerEnd &server, bool is_for_messages) {
  auto link = std::make_shared<Link>();
  link->client = &client;
  link->server = &server;
  link->is_for_messages = is_for_messages;
  links_.emplace(++last_id_, std::move(link));
  return last_id_;
}

Nanos Network::delay() {
  const Nanos usual = random_.between(plan_.delay_min, plan_.delay_max);
  if (is_calm_ || !plan_.has(Fault::kSpike) || !random_.chance(3)) return usual;
  stats_.inject(Fault::kSpike, true);
  return usual + random_.between(1, random_.chance(500) ? 50 * kMs : kLongSpike);
}

Nanos Network::arrival(Direction &direction) {
  direction.last = std::max(direction.last, schedule_.now() + delay());
  direction.in_flight++;
  return direction.last;
}

void Network::send_up(uint64_t id, CommandList commands) {
  const auto found = links_.find(id);
  if (found == links_.end() || !found->second->is_client_open) return;
  const LinkPtr link = found->second;
  if (std::exchange(link->is_marked, false)) {
    schedule_.in(random_.between(0, 3 * plan_.delay_max),
                 [this, id, ending = link->marked_ending] { cut(id, ending); });
  }
  auto packet = std::make_shared<CommandList>(std::move(commands));
  schedule_.at(arrival(link->up), [this, id, link, packet] { arrive_up(id, link, packet); });
}

void Network::arrive_up(uint64_t id, const LinkPtr &link,
                        const std::shared_ptr<CommandList> &commands) {
  Direction &up = link->up;
  if (up.stalled > schedule_.now()) {
    up.last = std::max(up.last, up.stalled + 1);  // later messages arrive after this one
    schedule_.at(up.stalled, [this, id, link, commands] { arrive_up(id, link, commands); });
    return;
  }
  up.in_flight--;
  if (!link->is_server_open || up.may_arrive <= 0) return;
  up.may_arrive--;
  if (link->is_late) stats_.hit(Fault::kLateCopy);
  link->server->received(id, std::move(*commands));
}

void Network::send_down(uint64_t id, Messages messages, bool is_push) {
  const auto found = links_.find(id);
  if (found == links_.end() || !found->second->is_client_open) return;
  const LinkPtr link = found->second;
  Direction &direction = link->down;
  Nanos at = arrival(direction);
  if (is_push && link->is_for_messages && plan_.has(Fault::kLatePush) && !is_calm_ &&
      random_.chance(plan_.late_push_chance)) {
    stats_.inject(Fault::kLatePush, true);
    at += random_.between(1, plan_.late_push_max);
    direction.last = at;
  }
  auto packet = std::make_shared<Messages>(std::move(messages));
  if (is_push && !is_calm_ && plan_.has(Fault::kDuplicatePush) && random_.chance(50)) {
    stats_.inject(Fault::kDuplicatePush, true);
    auto copy = std::make_shared<Messages>(*packet);
    direction.in_flight++;
    schedule_.at(at + random_.between(0, random_.chance(800) ? 20 * kMs : kLatest),
                 [this, id, link, copy] { arrive_down(id, link, copy); });
  }
  schedule_.at(at, [this, id, link, packet] { arrive_down(id, link, packet); });
}

void Network::arrive_down(uint64_t id, const LinkPtr &link,
                          const std::shared_ptr<Messages> &messages) {
  Direction &down = link->down;
  if (!link->is_client_open) return;
  if (down.stalled > schedule_.now()) {
    down.last = std::max(down.last, down.stalled + 1);
    schedule_.at(down.stalled, [this, id, link, messages] { arrive_down(id, link, messages); });
    return;
  }
  down.in_flight--;
  link->client->received(id, std::move(*messages));
}

void Network::close(uint64_t id, Ending ending) {
  if (const auto gone = resets_.find(id); gone != resets_.end()) {
    gone->second->is_client_open = false;
    resets_.erase(gone);
  }
  const auto found = links_.find(id);
  if (found == links_.end() || !found->second->is_client_open) return;
  const LinkPtr link = found->second;
  link->is_client_open = false;
  Direction &up = link->up;
  // A prefix of the commands in flight still arrives.
  up.may_arrive = up.in_flight == 0 ? 0 : random_.between(0, static_cast<int64_t>(up.in_flight));
  Nanos end = up.may_arrive > 0 ? up.last : schedule_.now() + delay();
  const bool is_late =
      up.may_arrive > 0 && !is_calm_ && plan_.has(Fault::kLateCopy) && random_.chance(500);
  if (is_late) {
    stats_.inject(Fault::kLateCopy, false);
    link->is_late = true;
    up.stalled = std::max(up.stalled, schedule_.now() + random_.between(1 * kMs, kLatest));
    end = std::max(end, up.stalled) + 1;
  }
  if (ending == Ending::kLate) end += random_.between(1, 10'000) * kMs;
  schedule_.at(end + 1, [this, id] {
    const auto still = links_.find(id);
    if (still == links_.end()) return;
    const LinkPtr gone = still->second;
    gone->is_server_open = false;
    links_.erase(still);
    gone->server->closed(id);
  });
}

void Network::cut(uint64_t id, Ending ending) {
  const auto found = links_.find(id);
  if (found == links_.end() || !found->second->is_client_open) return;
  ClientEnd *client = found->second->client;
  close(id, ending);
  client->closed(id);
}

void Network::cut_when_sending(uint64_t id, Ending ending) {
  const auto found = links_.find(id);
  if (found == links_.end()) return;
  found->second->is_marked = true;
  found->second->marked_ending = ending;
}

void Network::reset(uint64_t id) {
  const auto found = links_.find(id);
  if (found == links_.end()) return;
  const LinkPtr link = found->second;
  link->is_server_open = false;
  links_.erase(found);
  if (!link->is_client_open) return;
  resets_[id] = link;
  schedule_.in(delay(), [this, id, link] {
    if (!link->is_client_open) return;
    link->is_client_open = false;
    resets_.erase(id);
    link->client->closed(id);
  });
}

void Network::stall(uint64_t id, bool is_up, Nanos until) {
  const auto found = links_.find(id);
  if (found == links_.end()) return;
  Direction &direction = is_up ? found->second->up : found->second->down;
  direction.stalled = std::max(direction.stalled, until);
}

void Network::heal() {
  is_calm_ = true;
  for (const auto &[id, link] : links_) {
    for (Direction *direction : {&link->up, &link->down}) {
      if (link->is_client_open) direction->stalled = 0;
    }
  }
}

}  // namespace redlatch::sim
