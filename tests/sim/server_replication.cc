// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Server: as a primary, which its replicas follow, or as a replica.
#include <utility>

#include "server.h"

namespace redlatch::sim {

// What is written by one command goes to the replicas in one piece.
void Server::journalise(Session &session) {
  if (dirty_.empty()) return;
  Effects effects;
  for (const std::string &key : std::exchange(dirty_, {})) {
    effects.emplace_back(key, std::nullopt);
    if (const auto *entry = store_.entry_at(key)) effects.back().second = *entry;
  }
  session.written = ++offset_;
  journal_->wrote(static_cast<size_t>(number_ - 1), std::move(effects));
}

void Server::apply(const Effects &effects) {
  for (const auto &[key, entry] : effects) store_.assign(key, entry);
}

// A replica leaves it to its primary to delete what has expired.
void Server::expire() {
  if (journal_ != nullptr && (store_.is_replica() || !is_up_)) return;
  store_.expire(now_us());
  Session background;
  if (journal_ != nullptr) journalise(background);
}

void Server::demote() {
  store_.set_replica(true);
  waiting_.clear();
  const auto sessions = std::exchange(sessions_, {});
  for (const auto &[link, session] : sessions) network_.reset(link);
}

bool Server::has_read_primary(uint64_t link) const {
  const auto found = sessions_.find(link);
  return found != sessions_.end() && found->second.has_read_primary;
}

// ---- WAIT --------------------------------------------------------------------------------------

// It counts the replicas that have the last write of its own connection: all, if that has written
// nothing.
void Server::wait(uint64_t link, Session &session, Argv argv) {
  stats_.commands++;
  if (store_.is_replica()) {
    answers_.push_back(
        {Message::Kind::kReply,
         Value::error("ERR WAIT cannot be used with replica instances. Please also note that since "
                      "Redis 4.0 if a replica is configured to be writable (which is not the "
                      "default) writes to replicas are just local and are not propagated.")});
    return;
  }
  const int64_t count =
      journal_->confirmed_count(static_cast<size_t>(number_ - 1), session.written);
  session.wait_for = integer_of(argv[1]);
  if (count >= session.wait_for) {
    answers_.push_back({Message::Kind::kReply, Value::of(count)});
    return;
  }
  session.wait = ++wait_count_;
  const Nanos timeout = integer_of(argv[2]) * kMs;
  if (timeout == 0) return;  // no limit
  schedule_.in(timeout, [this, link, wait = session.wait] { end_wait(link, wait); });
}

void Server::end_wait(uint64_t link, uint64_t wait) {
  const auto found = sessions_.find(link);
  if (found == sessions_.end() || found->second.wait != wait) return;
  if (schedule_.now() < paused_until_) {
    return schedule_.at(paused_until_, [this, link, wait] { end_wait(link, wait); });
  }
  Session &session = found->second;
  session.wait = 0;
  const int64_t count =
      journal_->confirmed_count(static_cast<size_t>(number_ - 1), session.written);
  trace_.mix(static_cast<uint64_t>(count));
  trace_.say(schedule_.now(), "node %d: WAIT on connection %llu -> %d", number_ - 1,
             static_cast<unsigned long long>(link), static_cast<int>(count));
  Messages messages;
  messages.push_back({Message::Kind::kReply, Value::of(count)});
  network_.send_down(link, std::move(messages), false);
  run(link, std::exchange(session.behind, {}));
}

void Server::note_confirmed() {
  std::vector<std::pair<uint64_t, uint64_t>> over;
  for (const auto &[link, session] : sessions_) {
    if (session.wait == 0) continue;
    const int64_t count =
        journal_->confirmed_count(static_cast<size_t>(number_ - 1), session.written);
    if (count >= session.wait_for) over.emplace_back(link, session.wait);
  }
  for (const auto &[link, wait] : over) end_wait(link, wait);
}

}  // namespace redlatch::sim
