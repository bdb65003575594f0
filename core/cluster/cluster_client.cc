// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "cluster/cluster_client.h"

#include <algorithm>
#include <cassert>
#include <set>
#include <utility>

#include "base/text.h"
#include "protocol/keys.h"

namespace redlatch::cluster {

using lock::Lease;
using lock::LockClient;
using lock::Request;

namespace {

// More redirects of a slot than this within a second are followed slowly.
constexpr int kMaxRedirects = 5;
constexpr Nanos kBounceWindow = 1000 * kMs;
// The least time between two reads of the map.
constexpr Nanos kMapPause = 20 * kMs;
// Nodes with a client, which never goes. A cluster uses up some when addresses change, and a broken
// node may name any number.
constexpr size_t kMaxNodes = 4096;

}  // namespace

ClusterClient::ClusterClient(const Settings &settings, std::span<const uint8_t, 16> random,
                             uint64_t seed, lock::Output &output)
    : settings_(settings), output_(output), entropy_(seed) {
  std::copy(random.begin(), random.end(), random_.begin());
  lock::Output &reports = *this;
  nodes_.push_back(std::make_unique<Node>(reports, 0, Settings(settings), random, entropy_.next()));
  unrouted().number_by(last_id_);
}

void ClusterClient::adopt(LockClient &from, Nanos now) {
  last_id_ = from.last_number();
  unrouted().take_over_all(from, now);
}

// ---- nodes -------------------------------------------------------------------------------------

bool ClusterClient::is_allowed(const HostPort &server) const {
  return settings_.cluster.allows(server.host);
}

// Makes its client if it has none.
size_t ClusterClient::node_of(uint16_t slot) { return node_at(map_.owner(slot)); }

// 0: the server may not be used, or is not known.
size_t ClusterClient::node_at(uint16_t number) {
  if (number == SlotMap::kNone) return 0;
  if (const auto found = node_numbers_.find(number); found != node_numbers_.end()) {
    return found->second;
  }
  const HostPort &server = map_.server(number);
  if (!is_allowed(server) || nodes_.size() > kMaxNodes) return 0;
  const auto ranges = map_.ranges_of(number);
  const std::string cid =
      protocol::make_cid_within(protocol::channel_prefix(settings_.name_space), ranges, random_);
  const size_t index = nodes_.size();
  lock::Output &reports = *this;
  auto node =
      std::make_unique<Node>(reports, index, settings_.of_node(server), random_, entropy_.next());
  node->client.number_by(last_id_);
  if (!cid.empty()) node->client.change_channel(cid, now_);
  nodes_.reserve(nodes_.size() + 1);
  node_numbers_.emplace(number, index);
  try {
    output_.open_node(index, node->settings);
  } catch (...) {
    node_numbers_.erase(number);
    throw;
  }
  nodes_.push_back(std::move(node));
  return index;
}

size_t ClusterClient::home_of(uint16_t slot) const {
  for (const Move &move : moves_) {
    if (move.slot == slot) return move.from;
  }
  const uint16_t number = map_.owner(slot);
  const auto found = number == SlotMap::kNone ? node_numbers_.end() : node_numbers_.find(number);
  return found == node_numbers_.end() ? 0 : found->second;
}

// 0 also if it is about no lock.
size_t ClusterClient::home_of(const Request &request) const {
  if (const auto node = LockClient::node_of(request)) return *node;
  for (size_t i = 1; i < nodes_.size(); i++) {
    if (nodes_[i]->client.has(request)) return i;
  }
  return 0;
}

// Draws a channel in another slot of the node, once no connection uses the old one.
void ClusterClient::redraw(size_t number, Nanos now) {
  Node &node = *nodes_[number];
  if (!node.is_redrawn) return;
  if (!node.client.is_down()) {
    if (node.client.is_up()) output_.drop_link(number);
    return;
  }
  const auto found = std::find_if(node_numbers_.begin(), node_numbers_.end(),
                                  [number](const auto &entry) { return entry.second == number; });
  assert(found != node_numbers_.end());
  const auto ranges = map_.ranges_of(found->first);
  if (node.client.is_channel_taken()) entropy_.mix_into(random_);  // else the same is drawn again
  const std::string cid =
      protocol::make_cid_within(protocol::channel_prefix(settings_.name_space), ranges, random_);
  if (!cid.empty()) node.client.change_channel(cid, now);
  node.is_redrawn = false;
}

// ---- calls -------------------------------------------------------------------------------------

void ClusterClient::finish(Request &request, Status status, std::string_view message) {
  request.complete(status, message);
  output_.finished(request);
}

Outcome ClusterClient::check_name(const Request &request) const {
  if (request.name.empty() || request.op == Request::Op::kList) return {};
  return protocol::check_cluster_name(settings_.name_space, request.name, request.options.format);
}

void ClusterClient::start(const std::shared_ptr<Request> &request, Nanos now) {
  now_ = now;
  if (is_shut_) return finish(*request, Status::kClosed, "the client was shut down");
  const auto outcome = check_name(*request);
  if (!outcome.ok()) return finish(*request, outcome.status, outcome.message);
  route(request, now);
  carry_out_plans(now);
}

void ClusterClient::route(const std::shared_ptr<Request> &request, Nanos now) {
  if (request->op == Request::Op::kList) return start_list(request, now);
  size_t node = 0;
  if (const auto home = LockClient::node_of(*request)) {
    node = *home;
  } else if (!request->name.empty()) {
    const uint16_t named = protocol::slot_of(settings_.name_space + request->name);
    node = home_of(named);
    if (node == 0 && is_map_known_) node = node_of(named);
  } else if (request->op == Request::Op::kConnect && is_map_known_ && !is_map_wanted_) {
    return finish(*request, Status::kOk, {});
  } else if (request->op == Request::Op::kCheck && is_map_known_) {
    return start_check(request, now);
  }
  client(node).start(request, now);
}

Status ClusterClient::cancel(Request &request, Nanos now) {
  now_ = now;
  if (const Check *check = check_of(request)) {
    for (const auto &part : check->parts) (void)client(home_of(*part)).cancel(*part, now);
    carry_out_plans(now);
    return request.status.load();
  }
  const Status status = client(home_of(request)).cancel(request, now);
  carry_out_plans(now);
  return status;
}

void ClusterClient::release_async(Lease &lease, Nanos now) {
  now_ = now;
  if (const auto node = LockClient::node_of(lease)) client(*node).release_async(lease, now);
  carry_out_plans(now);
}

void ClusterClient::shut_down(Nanos now) {
  now_ = now;
  is_shut_ = true;
  for (const auto &node : nodes_) node->client.shut_down(now);
  carry_out_plans(now);
}

void ClusterClient::give_up() {
  for (const auto &node : nodes_) node->client.give_up();
}

size_t ClusterClient::drained_count() const {
  return static_cast<size_t>(std::count_if(
      nodes_.begin(), nodes_.end(), [](const auto &node) { return node->client.is_drained(); }));
}

bool ClusterClient::expects_push() const {
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [](const auto &node) { return node->client.expects_push(); });
}

bool ClusterClient::is_outstanding() const {
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [](const auto &node) { return node->client.is_outstanding(); });
}

bool ClusterClient::waits_for_itself(const Request &request) const {
  return nodes_[home_of(request)]->client.waits_for_itself(request);
}

bool ClusterClient::is_idle() const {
  return moves_.empty() && lists_.empty() &&
         std::all_of(nodes_.begin(), nodes_.end(),
                     [](const auto &node) { return node->client.is_idle(); });
}

const char *ClusterClient::check() const {
  std::set<uint16_t> known;
  for (const auto &node : nodes_) {
    for (const uint16_t slot : node->client.slots()) {
      if (!known.insert(slot).second) return "one client has the locks of a slot";
    }
    for (const uint16_t slot : node->client.held_back()) {
      const bool is_planned = std::any_of(moves_.begin(), moves_.end(),
                                          [slot](const Move &move) { return move.slot == slot; });
      if (!is_planned) return "a slot is held back only while it moves";
    }
  }
  return nullptr;
}

void ClusterClient::describe(std::span<NodeStatus> nodes, Nanos now) {
  for (size_t i = 1; i < nodes_.size(); i++) client(i).describe(nodes.subspan(i, 1), now);
}

// ---- the map -----------------------------------------------------------------------------------

// Those of the URL may always be asked.
std::vector<HostPort> ClusterClient::known_servers() const {
  std::vector<HostPort> servers;
  const auto add = [&](const HostPort &server) {
    const bool is_known = std::find(servers.begin(), servers.end(), server) != servers.end();
    if (!is_known) servers.push_back(server);
  };
  // Nodes that are connected answer soonest, and know of the others.
  for (const auto &[number, index] : node_numbers_) {
    if (nodes_[index]->client.is_up()) add(map_.server(number));
  }
  for (const HostPort &server : settings_.cluster.addresses) add(server);
  for (size_t i = 0; i < map_.server_count(); i++) {
    const HostPort &server = map_.server(static_cast<uint16_t>(i));
    if (is_allowed(server)) add(server);
  }
  return servers;
}

void ClusterClient::want_map(Nanos now) {
  if (is_shut_ || std::exchange(is_map_wanted_, true)) return;
  map_at_ = std::max(map_at_, now);
}

void ClusterClient::on_slots_read(std::span<const protocol::SlotRange> ranges, Nanos now) {
  now_ = now;
  is_map_read_ = false;
  unrouted().set_trying(false);
  map_.replace(ranges);
  // An answer that came meanwhile is newer.
  for (const auto &[slot, server] : recent_) map_.set(slot, server);
  is_map_known_ = true;
  map_at_ = now + kMapPause;
  map_pause_.reset();
  std::erase_if(bounces_,
                [now](const auto &entry) { return entry.second.since + kBounceWindow < now; });
  for (size_t i = 0; i < nodes_.size(); i++) plan_moves(i, now);
  note_lost_channels();
  carry_out_plans(now);
  place_unrouted(now);
  carry_out_plans(now);
}

// Channels whose slots the map gives to another node. A node that serves no slot has no better one.
void ClusterClient::note_lost_channels() {
  for (const auto &[number, index] : node_numbers_) {
    const LockClient &client = nodes_[index]->client;
    const uint16_t slot = protocol::slot_of(client.channel(index));
    const bool is_lost = map_.is_primary(number) && map_.owner(slot) != number;
    nodes_[index]->is_redrawn = nodes_[index]->is_redrawn || is_lost;
  }
}

// Locks whose slots the map gives to another node.
void ClusterClient::plan_moves(size_t from, Nanos now) {
  for (const uint16_t slot : client(from).slots()) {
    const uint16_t number = map_.owner(slot);
    const auto found = node_numbers_.find(number);
    const bool is_at_home = found != node_numbers_.end() && found->second == from;
    const bool has_home = number != SlotMap::kNone;
    if (!is_at_home && (has_home || from != 0)) plan_move(slot, from, now);
  }
}

bool ClusterClient::is_moving(uint16_t slot) const {
  return std::any_of(moves_.begin(), moves_.end(),
                     [slot](const Move &move) { return move.slot == slot; });
}

void ClusterClient::plan_move(uint16_t slot, size_t from, Nanos not_before) {
  if (is_moving(slot)) return;
  moves_.reserve(moves_.size() + 1);  // a slot that is held back without a move would be stuck
  client(from).hold_back(slot);
  moves_.push_back({slot, from, not_before});
}

// The map is known. Requests that are not about a lock find their nodes. Requests for a lock that
// no node serves are answered as if the server could not be reached.
void ClusterClient::place_unrouted(Nanos now) {
  std::vector<std::shared_ptr<Request>> requests;
  while (auto request = unrouted().take_request()) requests.push_back(std::move(request));
  for (const auto &request : requests) {
    if (request->op == Request::Op::kConnect) {
      finish(*request, Status::kOk, {});
    } else {
      route_or_fail(request, now);
    }
  }
  if (!unrouted().has_work()) return;
  unrouted().on_connect_failed(
      0, failure(Status::kUnavailable, settings_.address() + why_homeless()), now);
}

// Why an unrouted lock has no node.
std::string ClusterClient::why_homeless() const {
  for (const uint16_t slot : nodes_.front()->client.slots()) {
    const uint16_t number = map_.owner(slot);
    if (number == SlotMap::kNone) continue;
    if (!is_allowed(map_.server(number))) return not_allowed(map_.server(number));
    if (nodes_.size() > kMaxNodes && !node_numbers_.contains(number)) {
      return ": a client can use " + std::to_string(kMaxNodes) +
             " nodes, and the cluster has named more: make a new client";
    }
  }
  return ": no node serves the slot of this lock";
}

// ---- connections -------------------------------------------------------------------------------

bool ClusterClient::begin_connect(size_t node, Nanos now) {
  now_ = now;
  if (node != 0) return client(node).begin_connect(node, now);
  const bool is_due = unrouted().is_connecting(now) || (is_map_wanted_ && map_at_ <= now);
  if (is_map_read_ || !is_due) return false;
  is_map_read_ = true;
  is_map_wanted_ = false;
  recent_.clear();
  unrouted().set_trying(true);
  return true;
}

void ClusterClient::on_connected(size_t node, const ServerFacts &facts, Nanos now) {
  now_ = now;
  if (facts.channel_owner) {
    // First: locks in the slot of the channel go there, too. Unless a map that was read meanwhile
    // has taken them from this node: its view may be older than the map.
    const uint16_t slot = protocol::slot_of(client(node).channel(node));
    const size_t home = node_of(slot);
    if (home == node || home == 0) {
      redirected(node, {protocol::Redirect::Kind::kMoved, slot, *facts.channel_owner});
    } else {
      want_map(now);
    }
    note_lost_channels();
  }
  client(node).on_connected(node, facts, now);
  if (client(node).is_channel_taken()) nodes_[node]->is_redrawn = true;
  carry_out_plans(now);
}

void ClusterClient::on_connect_failed(size_t node, const Outcome &why, Nanos now) {
  now_ = now;
  if (node == 0) {
    is_map_read_ = false;
    is_map_wanted_ = is_map_known_;
    map_at_ = after(now, map_pause_.next(entropy_.next()));
  } else {
    want_map(now);
  }
  client(node).on_connect_failed(node, why, now);
  carry_out_plans(now);
}

void ClusterClient::on_disconnected(size_t node, Nanos now) noexcept {
  now_ = now;
  client(node).on_disconnected(node, now);
  want_map(now);
  carry_out_plans(now);
}

void ClusterClient::on_reply(size_t node, const Reply &reply, Nanos now) {
  now_ = now;
  client(node).on_reply(node, reply, now);
  carry_out_plans(now);
}

void ClusterClient::on_push(size_t node, std::string_view message, Nanos now) {
  now_ = now;
  client(node).on_push(node, message, now);
  carry_out_plans(now);
}

void ClusterClient::on_invalidated(size_t node, std::string_view key, Nanos now) {
  now_ = now;
  client(node).on_invalidated(node, key, now);
  carry_out_plans(now);
}

void ClusterClient::on_all_invalidated(size_t node, Nanos now) {
  now_ = now;
  client(node).on_all_invalidated(node, now);
  carry_out_plans(now);
}

// The slot of the channel has moved, or the node is no longer a primary. If it became one again, it
// would not know of the subscription. So the connection is of no use.
void ClusterClient::on_unsubscribed(size_t node, Nanos now) {
  now_ = now;
  output_.drop_link(node);
  want_map(now);
}

bool ClusterClient::begin_side_connect(size_t node, Nanos now) {
  return client(node).begin_side_connect(node, now);
}

void ClusterClient::on_side_connected(size_t node, Nanos now) {
  now_ = now;
  client(node).on_side_connected(node, now);
  carry_out_plans(now);
}

void ClusterClient::on_side_connect_failed(size_t node, const Outcome &why, Nanos now) {
  now_ = now;
  client(node).on_side_connect_failed(node, why, now);
  carry_out_plans(now);
}

void ClusterClient::on_side_disconnected(size_t node, Nanos now) noexcept {
  now_ = now;
  client(node).on_side_disconnected(node, now);
}

void ClusterClient::on_side_reply(size_t node, const Reply &reply, Nanos now) {
  now_ = now;
  client(node).on_side_reply(node, reply, now);
  carry_out_plans(now);
}

// ---- time --------------------------------------------------------------------------------------

void ClusterClient::on_timer(Nanos now) {
  now_ = now;
  for (const auto &node : nodes_) node->client.on_timer(now);
  carry_out_plans(now);
}

Nanos ClusterClient::next_due() const {
  Nanos due = is_map_wanted_ && !is_map_read_ ? std::min(map_at_, plans_due_) : plans_due_;
  for (const auto &node : nodes_) due = std::min(due, node->client.next_due());
  for (const Move &move : moves_) {
    if (move.not_before > now_) due = std::min(due, move.not_before);
  }
  return due;
}

// ---- reports of the clients --------------------------------------------------------------------

void ClusterClient::redirected(size_t node, const protocol::Redirect &redirect) {
  want_map(now_);
  if (redirect.kind != protocol::Redirect::Kind::kMoved) return;
  Bounce &bounce = bounces_[redirect.slot];
  if (is_map_read_) recent_[redirect.slot] = redirect.to;
  moves_.reserve(moves_.size() + 1);
  map_.set(redirect.slot, redirect.to);
  // The other commands that were under way meet the same redirect: it counts once.
  if (is_moving(redirect.slot)) return;
  if (now_ - bounce.since >= kBounceWindow) bounce = {};
  if (bounce.count == 0) bounce.since = now_;
  const bool is_loop = bounce.count >= kMaxRedirects;
  const Nanos pause = is_loop ? bounce.pause.next(entropy_.next()) : 0;
  plan_move(redirect.slot, node, now_ + pause);
  bounce.count++;
}

// A node that has no slot yet has no client until its first ASK.
bool ClusterClient::ask_elsewhere(size_t, const HostPort &to,
                                  const std::shared_ptr<lock::DelegatedCommand> &delegated) {
  const size_t index = node_at(map_.number_of(to));
  if (index == 0) return false;
  if (client(index).run(delegated, now_)) return true;
  if (client(index).is_down()) client(index).want_connection(now_);
  return false;
}

// ---- what was planned --------------------------------------------------------------------------

// Without memory it is tried again a moment later: what was called has taken effect.
void ClusterClient::carry_out_plans(Nanos now) noexcept {
  plans_due_ = kNever;
  try {
    carry_out_moves(now);
    for (size_t i = 1; i < nodes_.size(); i++) redraw(i, now);
    end_checks();
    while (!lists_.empty()) {
      const auto request = std::move(lists_.back());
      lists_.pop_back();
      route_or_fail(request, now);
    }
  } catch (const std::bad_alloc &) {
    plans_due_ = now + lock::kNoMemoryRetry;
    // A lock may have been sent in part: the next connection repeats it.
    for (size_t i = 1; i < nodes_.size(); i++) {
      if (client(i).is_up()) output_.drop_link(i);
    }
  }
}

void ClusterClient::route_or_fail(const std::shared_ptr<Request> &request, Nanos now) noexcept {
  try {
    route(request, now);
  } catch (const std::bad_alloc &) {
    finish(*request, Status::kNoMemory, {});
  }
}

void ClusterClient::carry_out_moves(Nanos now) {
  for (auto move = moves_.begin(); move != moves_.end();) {
    move = carry_out(*move, now) ? moves_.erase(move) : move + 1;
  }
}

// @return false: it has to wait.
bool ClusterClient::carry_out(Move &move, Nanos now) {
  LockClient &from = client(move.from);
  if (now < move.not_before || !from.is_at_rest(move.slot)) return false;
  const size_t to = node_of(move.slot);
  if (to != move.from) client(to).take_over(from, move.slot, now);
  move.from = to;  // should resume() fail for want of memory, it is repeated
  client(to).resume(move.slot, now);
  return true;
}

}  // namespace redlatch::cluster
