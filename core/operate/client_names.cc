// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "operate/client_names.h"

namespace redlatch::operate {

std::string_view ClientNames::find(std::string_view cid) const {
  const auto found = entries_.find(cid);
  return found == entries_.end() ? std::string_view() : std::string_view(found->second.name);
}

bool ClientNames::is_due(std::string_view cid, Nanos now) const {
  const auto found = entries_.find(cid);
  return found == entries_.end() || found->second.due <= now;
}

void ClientNames::note_asked(std::string_view cid, Nanos now) {
  auto found = entries_.find(cid);
  if (found == entries_.end()) {
    // Among so many clients the next holder is hardly one of the known ones.
    if (entries_.size() >= kMaxCount) entries_.clear();
    found = entries_.try_emplace(std::string(cid)).first;
  }
  found->second.due = now + kRetryAfter;
}

void ClientNames::note_answer(std::string_view cid, std::string_view name, Nanos now) {
  const auto found = entries_.find(cid);
  if (found == entries_.end()) return;
  found->second.name = name;
  found->second.due = now + (name.empty() ? kRetryAfter : kKnownFor);
}

}  // namespace redlatch::operate
