// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Waiters: when a waiter asks again for a lock that others hold.
#include <algorithm>
#include <utility>
#include <vector>

#include "lock/waiters.h"
#include "timing/waiting.h"

namespace redlatch::lock {

void Waiters::on_notice_push(TokenRecord &record, const protocol::Push &push, Nanos now) {
  record.watcher.set_rank(0);
  // A script that did not count this waiter may have removed it from the queue.
  const Nanos due = record.server().channel.is_counted() ? now + (push.ms + 1) * kMs : now;
  // On a connection of its own the notice may overtake the answer, which names a far later time.
  if (record.acquisition.give(&Acquisition::keep_hint, due)) return;
  if (record.phase == Phase::kQueued) {
    timers_.set(record, std::min(record.due, due));
  } else if (record.phase == Phase::kHeld && record.upgrader) {
    record.upgrade->give(&Upgrade::on_hint, due);
    leases_.schedule(record, now);
  }
}

// The fence is the time of the grant by the server's clock, unless that was stepped back.
void Waiters::note_late_grant(const TokenRecord &record, const protocol::AcquireAnswer &answer,
                              Nanos now) {
  const bool is_notified = record.server().channel.hears(record.identity.token) &&
                           !protocol::polls(record.identity.member);
  if (!is_notified || record.is_sharing || record.is_unfenced || answer.fence <= 0) return;
  record.server().session.on_late_grant(answer.server_ms * kMs - answer.fence * 1'000, now);
}

// ---- the key of the lock -----------------------------------------------------------------------

Nanos Waiters::plan_recheck(TokenRecord &record, const protocol::AcquireAnswer &answer, Nanos now) {
  Checked<KeyWatch> &watch = record.lock->key_watch;
  const KeyWatch::Seen seen{answer.pttl_ms, answer.is_foreign_to(record.lock->keys.format),
                            answer.is_shared(), answer.is_left_to_others()};
  // A waiter whose entry says that it polls gets the lock without a message.
  const std::string &member =
      record.upgrader ? record.upgrade->get().member() : record.identity.member;
  const bool is_notified =
      record.server().channel.hears(record.identity.token) && !protocol::polls(member);
  const KeyWatch::Abilities abilities{record.server().features.can_track, is_notified};
  const auto step = watch.give(&KeyWatch::on_refused, record.watcher, seen, now, abilities);
  if (step.command == KeyWatch::Command::kTrack && track_key(record, now)) {
    watch.give(&KeyWatch::sent, record.watcher, now);
  }
  const Nanos delay = watch->poll_delay(record.watcher, seen, abilities, entropy_);
  if (!record.server().settings.is_of_cluster) return delay;
  // Nothing reports to a waiter that the slot of its lock has moved: the new node cannot reach its
  // channel, and grants the lock for the provisional time only.
  return std::min(delay, timing::poll_past_head(record.watcher.rank()));
}

// Ask for a report of the next change of the lock key.
bool Waiters::track_key(TokenRecord &record, Nanos now) {
  Server &server = record.server();
  protocol::Command on;
  protocol::Command next;
  protocol::Command find;
  protocol::track(on, next, find, record.lock->keys);
  for (protocol::Command *command : {&on, &next, &find}) {
    if (command == &on && server.is_tracking) continue;
    const LockCallKind *kind = &track_;
    if (command == &find) kind = &find_key_;
    const Call call{kind, protocol::EvalMode::kText, now, 0, record.shared_from_this()};
    if (!server.session.try_send(*command, call)) return false;  // polling does without
  }
  server.is_tracking = true;
  return true;
}

void Waiters::Track::on_answer(const Call &call, const Reply &reply, Nanos) const {
  if (reply.is_error()) record_of(call).server().features.can_track = false;
}

void Waiters::on_key_found(TokenRecord &record, const Reply &reply, Nanos now) {
  const bool is_gone = reply.kind == Reply::Kind::kInteger && reply.integer == 0;
  const auto lock = record.lock;
  recheck(lock->key_watch.give(&KeyWatch::on_key_found, record.watcher, !is_gone, now), now);
}

void Waiters::recheck(const KeyWatch::Step &step, Nanos now) {
  const auto record = locks_.find(step.recheck_id);
  if (!record) return;
  if (record->upgrader) return leases_.on_upgrade_push(*record, now);
  if (record->acquisition.give(&Acquisition::keep_hint, step.recheck_at)) return;
  if (step.recheck_at <= now) {
    ask(*record, now);
  } else {
    timers_.set(*record, std::min(record->due, step.recheck_at));
  }
}

void Waiters::on_invalidated(const Server &server, std::optional<std::string_view> key, Nanos now) {
  const auto on_changed = [&](const std::shared_ptr<LockState> &lock) {
    recheck(lock->key_watch.give(&KeyWatch::on_changed, now), now);
  };
  if (!key) {
    std::vector<std::shared_ptr<LockState>> locks;
    for (const auto &[name, lock] : locks_.names()) {
      if (lock->server == &server) locks.push_back(lock);
    }
    for (const auto &lock : locks) on_changed(lock);
  } else if (key->starts_with(settings_.name_space)) {
    key->remove_prefix(settings_.name_space.size());
    for (const auto format : protocol::kFormats) {
      const auto lock = locks_.find(*key, format);
      if (lock && lock->server == &server) on_changed(lock);
    }
  }
}

// ---- the name of the holder --------------------------------------------------------------------

// @return whether a refused try is answered later, when the name of the holder is known.
bool Waiters::awaits_name(TokenRecord &record, Nanos now) {
  const std::string_view cid = record.lock->blocker;
  if (cid.empty() || cid == record.server().channel.cid() ||
      !record.server().names.is_due(cid, now))
    return false;
  auto query = std::make_shared<NameQuery>();
  query->cid = cid;
  // A vote is one of several answers: it does not wait for the name, which the next round knows.
  if (!record.is_vote) {
    query->record = record.shared_from_this();
    query->obstacle = record.lock->obstacle;
  }
  return record.server().names.ask(std::move(query), now) && !record.is_vote;
}

void Waiters::ask_wanted_name(LockState &lock, Nanos now) {
  if (!lock.is_name_wanted || lock.blocker.empty()) return;
  lock.is_name_wanted = false;
  Server &server = *lock.server;
  if (lock.blocker == server.channel.cid() || !server.names.is_due(lock.blocker, now)) return;
  auto query = std::make_shared<NameQuery>();
  query->cid = lock.blocker;
  (void)server.names.ask(std::move(query), now);
}

// The request will most likely time out: ask who the holder is.
void Waiters::on_slow(Request &request, Nanos now) {
  timers_.set(request, request.wait_until);
  if (is_confirming(request)) return;
  LockState &lock = *request.lock;
  TokenRecord *record = request.record != nullptr ? request.record : lock.place();
  if (record == nullptr || now < lock.blocker_due) return;
  lock.blocker_due = now + operate::ClientNames::kRetryAfter;
  lock.is_name_wanted = true;
  if (record->phase == Phase::kQueued) ask(*record, now);
}

}  // namespace redlatch::lock
