// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// LockClient: the locks of a server, one after the other. SCAN finds keys, in steps; GETRANGE shows
// which of them clients of ours hold, all keys of a step at once; INSPECT asks about one of those.
// A request asks until there is a lock that is held, or the end.
#include <cassert>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lock/calls.h"

namespace redlatch::lock {

namespace {

// A server that never ends its SCAN could have a list keep keys without a limit.
constexpr size_t kMaxListedKeys = 1'000'000;

// A server may answer with any keys: one that has no name behind the namespace is no lock, nor is
// one that is longer than both may be.
bool may_be_lock(std::string_view key, std::string_view name_space) {
  constexpr size_t kMaxKeyBytes = kMaxNamespaceBytes + kMaxNameBytes;
  return key.size() > name_space.size() && key.size() <= kMaxKeyBytes &&
         key.starts_with(name_space);
}

}  // namespace

void LockClient::start_list(const std::shared_ptr<Request> &request, Nanos now) {
  choose_key(*request);
  if (request->name.empty() && request->arguments->listing->is_last_step) {
    return finish(*request, Status::kEnd);
  }
  start_immediate(request, now);
}

// The last key that was found is to be inspected. It stays in the list until then, because a
// request that is cancelled has looked at nothing. Without a key, LIST is to be sent.
void LockClient::choose_key(Request &request) {
  RequestArguments &arguments = *request.arguments;
  Listing &listing = *arguments.listing;
  request.name.clear();
  arguments.format = protocol::Format::kString;
  arguments.earlier = arguments.info = {};
  if (listing.keys.empty()) return;
  assert(may_be_lock(listing.keys.back(), settings_.name_space));
  std::string name = listing.keys.back().substr(settings_.name_space.size());
  // May fail: a request with a name has the lock of that name.
  request.lock = std::make_shared<LockState>(settings_.name_space, name, arguments.format);
  request.name = std::move(name);
}

// The keys of a step were found.
void LockClient::inspect_keys(const std::shared_ptr<Request> &request, Nanos now) {
  RequestArguments &arguments = *request->arguments;
  auto &keys = arguments.found.keys;
  std::erase_if(keys,
                [this](const std::string &key) { return !may_be_lock(key, settings_.name_space); });
  arguments.unseen_count = 0;
  if (keys.empty()) return on_list_reply(request, now);
  timers_.set(*request, after(now, settings_.command_timeout));
  for (const std::string &key : keys) {
    protocol::Command command;
    protocol::look(command, key);
    const Call call{&calls_->inspect_key, protocol::EvalMode::kText, now, 0, request};
    if (!session_.try_send(command, call)) return finish_immediate(*request, Status::kNoMemory);
    arguments.unseen_count++;
  }
}

// Replies come in the order of the keys. On a new connection the step is repeated from its SCAN.
void LockClient::on_key_seen(const std::shared_ptr<Request> &request, const Reply &reply,
                             Nanos now) {
  if (request->is_finished()) return;
  RequestArguments &arguments = *request->arguments;
  auto &keys = arguments.found.keys;
  assert(arguments.unseen_count > 0 && arguments.unseen_count <= keys.size());
  std::string &key = keys[keys.size() - arguments.unseen_count];
  if (!protocol::is_lock_of_ours(reply)) key.clear();
  if (--arguments.unseen_count > 0) return;
  std::erase(keys, std::string());
  on_list_reply(request, now);
}

// The answer had keys, or a lock that is not held any more.
void LockClient::on_list_reply(const std::shared_ptr<Request> &request, Nanos now) {
  Listing &listing = *request->arguments->listing;
  if (!request->name.empty()) {
    listing.keys.pop_back();
  } else {
    auto &found = request->arguments->found;
    listing.keys.reserve(listing.keys.size() + found.keys.size());
    for (auto &key : found.keys) {
      if (listing.seen_keys.contains(key)) continue;
      if (listing.seen_keys.size() == kMaxListedKeys) {
        return finish_immediate(*request, Status::kServer,
                                "the list is of over " + std::to_string(kMaxListedKeys) +
                                    " locks: its pattern must name fewer");
      }
      listing.seen_keys.insert(key);
      listing.keys.push_back(std::move(key));
    }
    listing.cursor = std::move(found.cursor);
    listing.is_last_step = listing.cursor == "0";
  }
  choose_key(*request);
  if (request->name.empty() && listing.is_last_step) {
    if (output_.continues_list(request)) return take_out(*request);
    return finish_immediate(*request, Status::kEnd);
  }
  timers_.set(*request, after(now, settings_.command_timeout));
  send_request(request, now);
}

}  // namespace redlatch::lock
