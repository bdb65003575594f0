// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// ClusterClient: what is asked of all primaries, listings and checks.
#include <algorithm>
#include <new>
#include <utility>

#include "cluster/cluster_client.h"

namespace redlatch::cluster {

using lock::Request;

// Lists the locks of one primary after the other. A lock whose slot moves meanwhile may be missing.
void ClusterClient::start_list(const std::shared_ptr<Request> &request, Nanos now) {
  lock::Listing &listing = *request->arguments->listing;
  if (!is_map_known_) return unrouted().start(request, now);
  const bool is_over = listing.is_last_step && listing.keys.empty() && !goes_on(listing);
  const size_t primary = next_primary(listing.node);
  if (is_over || primary >= map_.server_count()) return finish(*request, Status::kEnd, {});
  listing.node = primary;
  const size_t node = node_of(first_slot(primary));
  if (node == 0) return refuse(*request, primary);
  client(node).start(request, now);
}

// Asks all primaries at once. Each gets one attempt to connect, so that one that is away keeps no
// caller waiting for the others; its row says why it is away.
void ClusterClient::start_check(const std::shared_ptr<Request> &request, Nanos now) {
  Check check{request, {}};
  std::vector<size_t> asked;
  size_t primary = next_primary(0);
  const size_t first = primary;
  for (; primary < map_.server_count(); primary = next_primary(primary + 1)) {
    const size_t node = node_of(first_slot(primary));
    if (node == 0) continue;
    asked.push_back(node);
    check.parts.push_back(std::make_shared<Request>(Request::Op::kCheck));
    check.parts.back()->wait_ms = 0;
  }
  if (asked.empty()) return refuse(*request, first);
  const auto parts = check.parts;
  checks_.push_back(std::move(check));
  for (size_t i = 0; i < asked.size(); i++) {
    try {
      client(asked[i]).start(parts[i], now);
    } catch (const std::bad_alloc &) {
      parts[i]->complete(Status::kNoMemory, {});
    }
  }
}

bool ClusterClient::is_part(const Request &request) const {
  return request.op == Request::Op::kCheck &&
         std::any_of(checks_.begin(), checks_.end(), [&](const Check &check) {
           return std::any_of(check.parts.begin(), check.parts.end(),
                              [&](const auto &part) { return part.get() == &request; });
         });
}

ClusterClient::Check *ClusterClient::check_of(const Request &request) {
  const auto found = std::find_if(checks_.begin(), checks_.end(), [&](const Check &check) {
    return check.request.get() == &request;
  });
  return found == checks_.end() ? nullptr : &*found;
}

// A check succeeds if a primary has answered, unless it was cancelled before the last answer.
void ClusterClient::end_checks() {
  for (size_t i = 0; i < checks_.size();) {
    const Check &check = checks_[i];
    const auto is_over = [](const auto &part) { return part->is_finished(); };
    if (!std::all_of(check.parts.begin(), check.parts.end(), is_over)) {
      i++;
      continue;
    }
    const auto rank = [](const auto &part) {
      const Status status = part->status.load();
      return status == Status::kCancelled ? 2 : status == Status::kOk ? 1 : 0;
    };
    const auto best = *std::max_element(
        check.parts.begin(), check.parts.end(),
        [&](const auto &one, const auto &other) { return rank(one) < rank(other); });
    const auto request = check.request;
    const Status status = best->status.load();
    const std::string message = std::move(best->message);
    checks_.erase(checks_.begin() + static_cast<ptrdiff_t>(i));
    finish(*request, status, message);
  }
}

// The primary may not be used, or the map has no primary.
void ClusterClient::refuse(Request &request, size_t primary) {
  const bool is_there = primary < map_.server_count();
  const auto why = is_there ? not_allowed(map_.server(static_cast<uint16_t>(primary)))
                            : std::string(": no node serves a slot");
  finish(request, Status::kUnavailable, settings_.address() + why);
}

// @return whether another primary is to be asked next.
bool ClusterClient::goes_on(lock::Listing &listing) const {
  const size_t primary = next_primary(listing.node + 1);
  if (primary >= map_.server_count()) return false;
  listing.node = primary;
  listing.cursor = "0";
  listing.is_last_step = false;
  return true;
}

// @return map_.server_count() behind the last primary.
size_t ClusterClient::next_primary(size_t number) const {
  while (number < map_.server_count() && !map_.is_primary(static_cast<uint16_t>(number))) number++;
  return number;
}

bool ClusterClient::continues_list(const std::shared_ptr<Request> &request) {
  if (next_primary(request->arguments->listing->node + 1) >= map_.server_count()) return false;
  lists_.push_back(request);
  return true;
}

}  // namespace redlatch::cluster
