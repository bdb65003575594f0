// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// List: SCAN finds keys, in steps. GETRANGE of all keys of a step shows which of them have a token
// of this library. INSPECT asks about these keys one by one, until one is held or none remains.
#include <cassert>
#include <utility>

#include "base/limits.h"
#include "operate/operation.h"
#include "operate/words.h"

namespace redlatch::operate {

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

bool List::begin(std::string_view name_space, std::string_view) {
  return Operation::begin(name_space, {}) && choose_key();
}

// Chooses the last key that was found, for INSPECT. The key stays in the list until its answer,
// because a request that is cancelled has looked at nothing. Without a key, SCAN is next. @return
// false if SCAN has no further step.
bool List::choose_key() {
  forget_answers();
  name.clear();
  if (listing->keys.empty()) return !listing->is_last_step;
  const std::string_view key = listing->keys.back();
  assert(may_be_lock(key, name_space()));
  return choose(key.substr(name_space().size()));
}

void List::ask(const Features &features, EvalMode eval, const Send &send) {
  if (!name.empty()) return Inspect::ask(features, eval, send);
  protocol::Command command;
  if (unseen_count_ == 0) {
    protocol::list(command, listing->cursor, listing->pattern);
    return send(command);
  }
  for (const std::string &key : found_.keys) {
    protocol::Command look;
    protocol::look(look, key);
    send(look);
  }
}

Operation::Step List::on_answer(const Reply &reply) {
  if (unseen_count_ > 0) return on_seen(reply);
  if (name.empty()) {
    const auto refusal = decode(reply, found_);
    return refusal ? refused(refusal) : on_found();
  }
  Step step = Inspect::on_answer(reply);
  if (step.next != Next::kNames || protocol::is_held_by_client(info)) return step;
  const int64_t server_ms = step.server_ms;
  step = next();
  step.server_ms = server_ms;
  return step;
}

Operation::Step List::on_found() {
  std::erase_if(found_.keys,
                [this](const std::string &key) { return !may_be_lock(key, name_space()); });
  if (found_.keys.empty()) return next();
  unseen_count_ = found_.keys.size();
  return {Next::kStep};
}

// Replies come in the order of the keys.
Operation::Step List::on_seen(const Reply &reply) {
  auto &keys = found_.keys;
  assert(unseen_count_ <= keys.size());
  std::string &key = keys[keys.size() - unseen_count_];
  if (!protocol::is_lock_of_ours(reply)) key.clear();
  if (--unseen_count_ > 0) return {Next::kWait};
  std::erase(keys, std::string());
  return next();
}

// The step found keys, or a lock that is not held any more.
Operation::Step List::next() {
  if (!name.empty()) {
    listing->keys.pop_back();
  } else {
    listing->keys.reserve(listing->keys.size() + found_.keys.size());
    for (auto &key : found_.keys) {
      if (listing->seen_keys.contains(key)) continue;
      if (listing->seen_keys.size() == kMaxListedKeys) {
        return {Next::kEnd, {Status::kServer, words::list_too_long(kMaxListedKeys)}};
      }
      listing->seen_keys.insert(key);
      listing->keys.push_back(std::move(key));
    }
    listing->cursor = std::move(found_.cursor);
    listing->is_last_step = listing->cursor == "0";
  }
  return choose_key() ? Step{Next::kStep} : Step{Next::kEnd, {Status::kEnd, {}}};
}

// Leaves out a lock that has moved to another node.
std::optional<Operation::Step> List::on_left() {
  return name.empty() ? std::nullopt : std::optional(next());
}

void List::on_end(Status status) noexcept {
  if (!name.empty() && status != Status::kCancelled) listing->keys.pop_back();
}

}  // namespace redlatch::operate
