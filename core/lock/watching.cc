// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Engine: the key of a lock that others hold. It gives the events to KeyWatch and carries out what
// that returns.
#include <algorithm>
#include <vector>

#include "lock/engine.h"

namespace redlatch::lock {

void Engine::note_waiting(Hold &hold) {
  KeyWatch &watch = hold.lock->key_watch;
  watch.set_waiting(hold.watcher, hold.phase == Phase::kQueued || hold.upgrader != nullptr);
  verify(watch);
}

// @return when `hold`, which was not granted, asks again if no message comes.
Nanos Engine::watch_key(Hold &hold, const protocol::AcquireAnswer &answer, Nanos now) {
  KeyWatch &watch = hold.lock->key_watch;
  const KeyWatch::Seen seen{answer.pttl_ms, answer.is_foreign(), answer.is_shared(),
                            answer.is_left_to_others()};
  // Where messages may be missing, an upgrade polls only when the leases of the others can have
  // ended: up to 15 s late, while it still reads.
  const KeyWatch::Link link{can_track_, is_push_trusted_ || hold.upgrader != nullptr};
  const auto step = watch.on_refused(hold.watcher, seen, now, link);
  verify(watch);
  if (step.command == KeyWatch::Command::kTrack && track_key(hold, now)) {
    watch.sent(hold.watcher, now);
    verify(watch);
  }
  return watch.poll_delay(hold.watcher, seen, link, entropy_);
}

// Ask for a report of the next change of the lock key.
bool Engine::track_key(Hold &hold, Nanos now) {
  protocol::Command on;
  protocol::Command next;
  protocol::Command look;
  protocol::track(on, next, look, hold.lock->keys);
  for (protocol::Command *command : {&on, &next, &look}) {
    if (command == &on && is_tracking_) continue;
    const Ask ask = command == &look ? Ask::kLook : Ask::kTrack;
    const InFlight in_flight{ask, protocol::EvalMode::kText, now, 0, hold.shared_from_this()};
    if (!try_send(*command, in_flight)) return false;  // polling does without
  }
  is_tracking_ = true;
  return true;
}

void Engine::on_looked(Hold &hold, const Reply &reply, Nanos now) {
  const bool is_gone = reply.kind == Reply::Kind::kInteger && reply.integer == 0;
  const auto lock = hold.lock;
  recheck(lock, lock->key_watch.on_looked(hold.watcher, !is_gone, now), now);
}

void Engine::recheck(const std::shared_ptr<LockName> &lock, const KeyWatch::Step &step, Nanos now) {
  verify(lock->key_watch);
  const auto found = holds_.find(step.recheck_id);
  if (found == holds_.end()) return;
  const auto hold = found->second;
  if (hold->upgrader) return on_upgrade_push(*hold, now);
  if (hold->acquisition.keep_hint(step.recheck_at)) return;
  if (step.recheck_at <= now) {
    ask(*hold, now);
  } else {
    timers_.set(*hold, std::min(hold->due, step.recheck_at));
  }
}

void Engine::on_invalidated(size_t, std::string_view key, Nanos now) {
  if (!key.starts_with(settings_.name_space)) return;
  key.remove_prefix(settings_.name_space.size());
  for (const auto format : protocol::kFormats) {
    const auto found = names_.find({format, key});
    if (found == names_.end()) continue;
    const auto lock = found->second;
    recheck(lock, lock->key_watch.on_changed(now), now);
  }
}

void Engine::on_all_invalidated(size_t, Nanos now) {
  std::vector<std::shared_ptr<LockName>> locks;
  for (const auto &[name, lock] : names_) locks.push_back(lock);
  for (const auto &lock : locks) recheck(lock, lock->key_watch.on_changed(now), now);
}

}  // namespace redlatch::lock
