// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "cluster/cluster_client.h"

#include <algorithm>
#include <new>
#include <utility>

#include "cluster/words.h"
#include "protocol/keys.h"
#include "protocol/slots.h"

namespace redlatch::cluster {

using lock::Lease;
using lock::LockClient;
using lock::Request;

namespace {

// The least time between two reads of the map.
constexpr Nanos kMapPause = 20 * kMs;

}  // namespace

ClusterClient::ClusterClient(const Settings &settings, std::span<const uint8_t, 16> random,
                             uint64_t seed, lock::Output &output)
    : ClusterClient(settings, random, seed, output,
                    std::make_unique<LockClient>(settings, random, ~seed, output)) {}

ClusterClient::ClusterClient(const Settings &settings, std::span<const uint8_t, 16> random,
                             uint64_t seed, lock::Output &output,
                             std::unique_ptr<LockClient> &&client)
    : settings_(settings),
      output_(output),
      router_(settings, random, seed, output, *client),
      client_(std::move(client)) {
  is_shut_ = client_->is_shut();
  client_->place_by(*this);
  router_.unplaced().session.set_trying(false);
}

// ---- calls -------------------------------------------------------------------------------------

void ClusterClient::finish(Request &request, Status status, std::string_view message) {
  request.complete(status, message);
  output_.finished(request);
}

void ClusterClient::start(const std::shared_ptr<Request> &request, Nanos now) {
  now_ = now;
  if (is_shut_) return finish(*request, Status::kClosed, lock::words::kShutDown);
  if (!request->name.empty() && !request->is_list()) {
    const auto outcome =
        protocol::check_cluster_name(settings_.name_space, request->name, request->options.format);
    if (!outcome.ok()) return finish(*request, outcome.status, outcome.message);
  }
  route(request, now);
  carry_out_plans(now);
}

void ClusterClient::route(const std::shared_ptr<Request> &request, Nanos now) {
  size_t node = 0;
  if (request->is_list()) {
    if (is_map_known_) return all_primaries_.start_list(request, now);
  } else if (!request->name.empty()) {
    const uint16_t slot = protocol::slot_of(settings_.name_space + request->name);
    node = is_map_known_ ? router_.node_of(slot, now) : router_.known_node_of(slot);
  } else if (request->op == Request::Op::kConnect && is_map_known_ && !is_map_wanted_) {
    return finish(*request, Status::kOk, {});
  } else if (request->op == Request::Op::kCheck && is_map_known_) {
    return all_primaries_.start_check(request, now);
  }
  client_->start(request, router_.server(node), now);
}

Status ClusterClient::cancel(Request &request, Nanos now) {
  now_ = now;
  const bool is_check = all_primaries_.cancel(request, now);
  const Status status = is_check ? Status::kOk : client_->cancel(request, now);
  carry_out_plans(now);
  return is_check ? request.status.load() : status;
}

void ClusterClient::release_async(Lease &lease, Nanos now) {
  now_ = now;
  client_->release_async(lease, now);
  carry_out_plans(now);
}

void ClusterClient::shut_down(Nanos now) {
  now_ = now;
  is_shut_ = true;
  client_->shut_down(now);
  carry_out_plans(now);
}

bool ClusterClient::is_idle() const {
  return !router_.has_moves() && !all_primaries_.has_lists() && client_->is_idle();
}

const char *ClusterClient::check() const {
  std::map<uint16_t, const lock::Server *> places;
  std::map<const lock::Server *, std::pair<size_t, size_t>> counts;  // of locks, of waiting records
  for (const auto &[id, lock] : client_->locks().names()) {
    counts[lock->server].first++;
    const auto [known, is_new] = places.emplace(lock->slot(), lock->server);
    if (!is_new && known->second != lock->server && !router_.is_moving(lock->slot()))
      return "the locks of a slot that does not move are at one node";
  }
  for (const auto &[id, record] : client_->locks().records()) {
    const bool is_waiting = lock::Locks::is_waiting(record->phase) || record->upgrader;
    if (is_waiting) counts[&record->server()].second++;
  }
  for (const auto &[server, count] : counts) {
    if (server->lock_count != count.first || server->waiting_count != count.second)
      return "a server counts its locks, and those that wait";
  }
  for (const uint16_t slot : client_->held_back()) {
    if (!router_.is_moving(slot)) return "a slot is held back only while it moves";
  }
  return nullptr;
}

// ---- the map -----------------------------------------------------------------------------------

void ClusterClient::want_map(Nanos now) {
  if (is_shut_ || std::exchange(is_map_wanted_, true)) return;
  map_at_ = std::max(map_at_, now);
}

void ClusterClient::on_slots_read(std::span<const protocol::SlotRange> ranges, Nanos now) {
  now_ = now;
  is_map_read_ = false;
  router_.unplaced().session.set_trying(false);
  router_.map().replace(ranges);
  // An answer that came meanwhile is newer.
  for (const auto &[slot, server] : recent_) router_.map().set(slot, server);
  is_map_known_ = true;
  map_at_ = now + kMapPause;
  map_pause_.reset();
  router_.follow_map(now);
  carry_out_plans(now);
  place_unplaced(now);
  carry_out_plans(now);
}

// The map is known. Requests that are not about a lock find their nodes. Requests for a lock that
// no node serves are answered as if the server could not be reached.
void ClusterClient::place_unplaced(Nanos now) {
  std::vector<std::shared_ptr<Request>> requests;
  while (auto request = client_->take_request(router_.unplaced()))
    requests.push_back(std::move(request));
  for (const auto &request : requests) {
    if (request->op == Request::Op::kConnect) {
      finish(*request, Status::kOk, {});
    } else {
      try {
        route(request, now);
      } catch (const std::bad_alloc &) {
        finish(*request, Status::kNoMemory, {});
      }
    }
  }
  if (!router_.unplaced().has_work()) return;
  const auto why =
      failure(Status::kUnavailable, words::unserved(settings_, router_.why_homeless()));
  client_->on_connect_failed(0, why, now);
}

// ---- connections -------------------------------------------------------------------------------

bool ClusterClient::begin_connect(size_t node, Nanos now) {
  now_ = now;
  if (node != 0) return client_->begin_connect(node, now);
  const bool is_due = router_.unplaced().is_connecting(now) || (is_map_wanted_ && map_at_ <= now);
  if (is_map_read_ || !is_due) return false;
  is_map_read_ = true;
  is_map_wanted_ = false;
  recent_.clear();
  router_.unplaced().session.set_trying(true);
  return true;
}

void ClusterClient::on_connected(size_t node, const ServerFacts &facts, Nanos now) {
  now_ = now;
  if (facts.channel_owner) {
    // First: locks in the slot of the channel go there, too. Unless a map that was read meanwhile
    // has taken them from this node: its view may be older than the map.
    const uint16_t slot = protocol::slot_of(channel(node));
    const size_t home = router_.node_of(slot, now);
    if (home == node || home == 0) {
      redirected(router_.server(node),
                 {protocol::Redirect::Kind::kMoved, slot, *facts.channel_owner});
    } else {
      want_map(now);
    }
    router_.note_lost_channels();
  }
  client_->on_connected(node, facts, now);
  router_.redraw_if_taken(node);
  carry_out_plans(now);
}

void ClusterClient::on_connect_failed(size_t node, const Outcome &why, Nanos now) {
  now_ = now;
  if (node == 0) {
    is_map_read_ = false;
    is_map_wanted_ = is_map_known_;
    map_at_ = after(now, map_pause_.next(router_.random()));
  } else {
    want_map(now);
  }
  client_->on_connect_failed(node, why, now);
  carry_out_plans(now);
}

void ClusterClient::on_disconnected(size_t node, Nanos now) noexcept {
  now_ = now;
  client_->on_disconnected(node, now);
  want_map(now);
  carry_out_plans(now);
}

// The slot of the channel has moved, or the node is no longer a primary. If it became one again, it
// would not know of the subscription. So the connection is of no use.
void ClusterClient::on_unsubscribed(size_t node, Nanos now) {
  now_ = now;
  output_.drop_link(node);
  want_map(now);
}

void ClusterClient::on_side_disconnected(size_t node, Nanos now) noexcept {
  now_ = now;
  client_->on_side_disconnected(node, now);
}

// ---- time --------------------------------------------------------------------------------------

void ClusterClient::on_timer(Nanos now) {
  now_ = now;
  client_->on_timer(now);
  carry_out_plans(now);
}

Nanos ClusterClient::next_due() const {
  Nanos due = std::min({plans_due_, router_.next_due(now_), client_->next_due()});
  if (is_map_wanted_ && !is_map_read_) due = std::min(due, map_at_);
  return due;
}

// ---- reports of the client ---------------------------------------------------------------------

void ClusterClient::redirected(const lock::Server &, const protocol::Redirect &redirect) {
  want_map(now_);
  if (redirect.kind != protocol::Redirect::Kind::kMoved) return;
  if (is_map_read_) recent_[redirect.slot] = redirect.to;
  router_.redirect(redirect.slot, redirect.to, now_);
}

// A node that has no slot yet is not in use until its first ASK.
bool ClusterClient::ask_elsewhere(const HostPort &to,
                                  const std::shared_ptr<lock::DelegatedCommand> &delegated) {
  const size_t node = router_.node_at(router_.map().number_of(to), now_);
  return node != 0 && client_->ask(router_.server(node), delegated, now_);
}

// ---- what was planned --------------------------------------------------------------------------

// Without memory it is tried again a moment later: what was called has taken effect.
void ClusterClient::carry_out_plans(Nanos now) noexcept {
  plans_due_ = kNever;
  try {
    router_.carry_out(now);
    all_primaries_.carry_out(now);
  } catch (const std::bad_alloc &) {
    plans_due_ = now + lock::kNoMemoryRetry;
    // A lock may have been sent in part: the next connection repeats it.
    for (size_t i = 1; i < router_.count(); i++) {
      if (router_.server(i).session.is_up()) output_.drop_link(i);
    }
  }
}

}  // namespace redlatch::cluster
