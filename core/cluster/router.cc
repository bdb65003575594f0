// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "cluster/router.h"

#include <algorithm>
#include <set>
#include <utility>

#include "cluster/words.h"
#include "protocol/keys.h"
#include "protocol/slots.h"
#include "protocol/token.h"

namespace redlatch::cluster {

namespace {

// Nodes in use. None is removed: a cluster uses up some when addresses change, and a broken node
// may name any number.
constexpr size_t kMaxNodes = 4096;
// More redirects of a slot than this within a second are followed slowly.
constexpr int kMaxRedirects = 5;
constexpr Nanos kBounceWindow = 1000 * kMs;

}  // namespace

Router::Router(const Settings &settings, std::span<const uint8_t, 16> random, uint64_t seed,
               lock::Output &output, lock::LockClient &client)
    : settings_(settings), output_(output), client_(client), entropy_(seed) {
  std::copy(random.begin(), random.end(), random_.begin());
  nodes_.push_back({settings});
}

// ---- servers -----------------------------------------------------------------------------------

size_t Router::node_at(uint16_t number, Nanos now) {
  if (number == SlotMap::kNone) return 0;
  const auto found = node_numbers_.find(number);
  if (found != node_numbers_.end()) return found->second;
  const HostPort &server = map_.server(number);
  if (!is_allowed(server) || nodes_.size() > kMaxNodes) return 0;
  const std::string cid = draw_cid(number);
  const size_t index = nodes_.size();
  const Node &node = nodes_.emplace_back(Node{settings_.of_node(server), number});
  lock::Server *added = nullptr;
  try {
    added = &client_.add_server(node.settings, random_);
    if (!cid.empty()) client_.change_channel(*added, cid, now);
    node_numbers_.emplace(number, index);
    output_.open_node(index, node.settings);
  } catch (...) {
    node_numbers_.erase(number);
    if (added != nullptr) client_.remove_last_server();
    nodes_.pop_back();
    throw;
  }
  return index;
}

size_t Router::known_node_of(uint16_t slot) const {
  const auto found = node_numbers_.find(map_.owner(slot));
  return found == node_numbers_.end() ? 0 : found->second;
}

std::vector<HostPort> Router::servers() const {
  std::vector<HostPort> servers;
  const auto add = [&](const HostPort &server) {
    const bool is_known = std::find(servers.begin(), servers.end(), server) != servers.end();
    if (!is_known) servers.push_back(server);
  };
  // Nodes that are connected answer soonest, and know of the others; those of the URL may always be
  // asked.
  for (const auto &[number, index] : node_numbers_) {
    if (client_.at(index).session.is_up()) add(map_.server(number));
  }
  for (const HostPort &server : settings_.cluster.addresses) add(server);
  for (size_t i = 0; i < map_.server_count(); i++) {
    const HostPort &server = map_.server(static_cast<uint16_t>(i));
    if (is_allowed(server)) add(server);
  }
  return servers;
}

std::string Router::why_homeless() {
  for (const auto &[slot, place] : client_.slots()) {
    if (place != &unplaced()) continue;
    const uint16_t number = map_.owner(slot);
    if (number == SlotMap::kNone) continue;
    if (!is_allowed(map_.server(number))) {
      return words::host_not_named(map_.server(number).host);
    }
    if (nodes_.size() > kMaxNodes && !node_numbers_.contains(number)) {
      return words::too_many_nodes(kMaxNodes);
    }
  }
  return std::string(words::kLockUnserved);
}

// ---- moves -------------------------------------------------------------------------------------

void Router::redirect(uint16_t slot, const HostPort &to, Nanos now) {
  Bounce &bounce = bounces_[slot];
  moves_.reserve(moves_.size() + 1);
  map_.set(slot, to);
  // The other commands that were under way meet the same redirect: it counts once.
  if (is_moving(slot)) return;
  if (now - bounce.since >= kBounceWindow) bounce = {};
  if (bounce.count == 0) bounce.since = now;
  const bool is_loop = bounce.count >= kMaxRedirects;
  const Nanos pause = is_loop ? bounce.pause.next(entropy_.next()) : 0;
  plan_move(slot, now + pause);
  bounce.count++;
}

void Router::follow_map(Nanos now) {
  std::erase_if(bounces_,
                [now](const auto &entry) { return entry.second.since + kBounceWindow < now; });
  for (const auto &[slot, place] : client_.slots()) {
    const size_t node = place->node;
    const bool is_at_home = node != 0 && known_node_of(slot) == node;
    const bool has_home = map_.owner(slot) != SlotMap::kNone;
    if (!is_at_home && (has_home || node != 0)) plan_move(slot, now);
  }
  note_lost_channels();
}

void Router::plan_move(uint16_t slot, Nanos not_before) {
  if (is_moving(slot)) return;
  moves_.reserve(moves_.size() + 1);  // a slot that is held back without a move would be stuck
  client_.hold_back(slot);
  moves_.push_back({slot, not_before});
}

void Router::carry_out(Nanos now) {
  move_slots(now);
  redraw(now);
}

// All at once: each pass goes over all locks.
void Router::move_slots(Nanos now) {
  if (moves_.empty()) return;
  const std::set<uint16_t> busy = client_.busy_slots();
  lock::Moves ready;
  for (const Move &move : moves_) {
    const bool is_due = now >= move.not_before && !busy.contains(move.slot);
    if (is_due) ready.emplace(move.slot, &server(node_of(move.slot, now)));
  }
  if (ready.empty()) return;
  client_.move(ready, now);
  client_.resume(ready, now);
  std::erase_if(moves_, [&ready](const Move &move) { return ready.contains(move.slot); });
}

Nanos Router::next_due(Nanos now) const {
  Nanos due = kNever;
  for (const Move &move : moves_) {
    if (move.not_before > now) due = std::min(due, move.not_before);
  }
  return due;
}

// ---- channels ----------------------------------------------------------------------------------

std::string Router::draw_cid(uint16_t number) const {
  return protocol::make_cid_within(protocol::channel_prefix(settings_.name_space),
                                   map_.ranges_of(number), random_);
}

// A node that serves no slot has no better channel.
void Router::note_lost_channels() {
  for (const auto &[number, index] : node_numbers_) {
    const uint16_t slot = protocol::slot_of(client_.channel(index));
    const bool is_lost = map_.is_primary(number) && map_.owner(slot) != number;
    nodes_[index].is_redrawn = nodes_[index].is_redrawn || is_lost;
  }
}

// Draws channels in other slots of their nodes, once no connection uses the old ones.
void Router::redraw(Nanos now) {
  for (size_t i = 1; i < nodes_.size(); i++) {
    Node &node = nodes_[i];
    if (!node.is_redrawn) continue;
    lock::Server &at = server(i);
    if (at.session.is_up()) output_.drop_link(i);
    if (!at.session.is_down()) continue;
    if (at.channel.is_taken()) entropy_.mix_into(random_);  // else the same is drawn again
    const std::string cid = draw_cid(node.number);
    if (!cid.empty()) client_.change_channel(at, cid, now);
    node.is_redrawn = false;
  }
}

}  // namespace redlatch::cluster
