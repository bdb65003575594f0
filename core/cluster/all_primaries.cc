// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "cluster/all_primaries.h"

#include <algorithm>
#include <new>
#include <utility>

#include "cluster/words.h"

namespace redlatch::cluster {

using lock::Request;

// Lists the locks of one primary after the other. A lock whose slot moves meanwhile may be missing.
void AllPrimaries::start_list(const std::shared_ptr<Request> &request, Nanos now) {
  operate::Listing &listing = *request->task->as_listing();
  const bool is_done = listing.is_last_step && listing.keys.empty();
  const size_t primary = next_primary(listing.node + (is_done ? 1 : 0));
  if (primary >= router_.map().server_count()) return finish(*request, Status::kEnd, {});
  if (is_done) {
    listing.cursor = '0';  // a character: g++ 12 at -O2 warns of a text
    listing.is_last_step = false;
  }
  listing.node = primary;
  const size_t node = node_of(primary, now);
  if (node == 0) return refuse(*request, primary);
  router_.client().start(request, router_.server(node), now);
}

bool AllPrimaries::continues_list(const std::shared_ptr<Request> &request) {
  const operate::Listing &listing = *request->task->as_listing();
  const size_t next = next_primary(listing.node + 1);
  if (next >= router_.map().server_count()) return false;
  lists_.push_back(request);
  return true;
}

// Asks all primaries at once. Each gets one attempt to connect, so that one that is away keeps no
// caller waiting for the others; its row says why it is away.
void AllPrimaries::start_check(const std::shared_ptr<Request> &request, Nanos now) {
  Check check{request, {}};
  const size_t first = next_primary(0);
  for (size_t at = first; at < router_.map().server_count(); at = next_primary(at + 1)) {
    const size_t node = node_of(at, now);
    if (node == 0) continue;
    check.parts.push_back({node, std::make_shared<Request>(Request::Op::kCheck)});
    check.parts.back().request->wait_ms = 0;
    check.parts.back().request->is_part = true;
  }
  if (check.parts.empty()) return refuse(*request, first);
  const auto parts = check.parts;
  checks_.push_back(std::move(check));
  for (const Part &part : parts) {
    try {
      router_.client().start(part.request, router_.server(part.node), now);
    } catch (const std::bad_alloc &) {
      part.request->complete(Status::kNoMemory, {});
    }
  }
}

bool AllPrimaries::cancel(const Request &request, Nanos now) {
  const auto found = std::find_if(checks_.begin(), checks_.end(), [&](const Check &check) {
    return check.request.get() == &request;
  });
  if (found == checks_.end()) return false;
  for (const Part &part : found->parts) (void)router_.client().cancel(*part.request, now);
  return true;
}

void AllPrimaries::carry_out(Nanos now) {
  end_checks();
  while (!lists_.empty()) {
    const auto request = std::move(lists_.back());
    lists_.pop_back();
    try {
      start_list(request, now);
    } catch (const std::bad_alloc &) {
      finish(*request, Status::kNoMemory, {});
    }
  }
}

// A check succeeds if a primary has answered, unless it was cancelled before the last answer.
void AllPrimaries::end_checks() {
  std::erase_if(checks_, [this](const Check &check) {
    const auto &parts = check.parts;
    const auto is_over = [](const Part &part) { return part.request->is_finished(); };
    if (!std::all_of(parts.begin(), parts.end(), is_over)) return false;
    const auto rank = [](const Part &part) {
      const Status status = part.request->status.load();
      return status == Status::kCancelled ? 2 : status == Status::kOk ? 1 : 0;
    };
    const auto best = std::max_element(
        parts.begin(), parts.end(),
        [&](const Part &one, const Part &other) { return rank(one) < rank(other); });
    finish(*check.request, best->request->status.load(), best->request->message);
    return true;
  });
}

// @return the count of servers behind the last primary.
size_t AllPrimaries::next_primary(size_t number) const {
  const SlotMap &map = router_.map();
  while (number < map.server_count() && !map.is_primary(static_cast<uint16_t>(number))) number++;
  return number;
}

size_t AllPrimaries::node_of(size_t primary, Nanos now) {
  return router_.node_at(static_cast<uint16_t>(primary), now);
}

// The primary may not be used, or the map has no primary.
void AllPrimaries::refuse(Request &request, size_t primary) {
  const SlotMap &map = router_.map();
  const bool is_there = primary < map.server_count();
  const auto why = is_there ? words::host_not_named(map.server(static_cast<uint16_t>(primary)).host)
                            : std::string(words::kSlotUnserved);
  finish(request, Status::kUnavailable, words::unserved(settings_, why));
}

void AllPrimaries::finish(Request &request, Status status, std::string_view message) {
  request.complete(status, message);
  output_.finished(request);
}

}  // namespace redlatch::cluster
