// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "lock/cleanups.h"

#include <algorithm>
#include <utility>

namespace redlatch::lock {

void Cleanups::start(TokenRecord &record, Nanos now, bool may_be_held, Nanos not_before) {
  const bool is_unanswered = record.upgrade && record.upgrade->get().is_unanswered();
  ServerFootprint left = record.acquisition.give(&Acquisition::give_up, is_unanswered, now);
  left.may_be_held = left.may_be_held || may_be_held;
  start_with(record, left, not_before, now);
}

void Cleanups::leave_retained(TokenRecord &record, Nanos now) {
  assert(record.phase == TokenRecord::Phase::kRetained);
  record.retention.give(&Retention::recall);
  start(record, now, true);
}

void Cleanups::start_gone(TokenRecord &record, Nanos now) {
  ServerFootprint left = record.acquisition.give(&Acquisition::give_up, false, now);
  left.may_be_queued = left.may_be_held = false;
  start_with(record, left, 0, now);
}

void Cleanups::start_with(TokenRecord &record, ServerFootprint left, Nanos not_before, Nanos now) {
  if (const Checked<HeldLease> *held = record.held_lease()) {
    if (held->get().state() == HeldLease::State::kHeld) held->get().leave(left);
    record.stage.emplace<Checked<Cleanup>>();
  }
  left.is_detached = record.phase == TokenRecord::Phase::kDetaching;
  record.lock->waitlist.give(&Waitlist::close, record);
  locks_.set_phase(record, TokenRecord::Phase::kCleanup);
  const bool is_up = redirects_.is_up(*record.lock);
  perform(record, record.cleanup().give(&Cleanup::start, left, not_before, now, is_up), now);
}

void Cleanups::give_up_vacant_place(LockState &lock, Nanos now) {
  if (lock.waitlist->state() == Waitlist::State::kVacant) start(*lock.place(), now);
}

void Cleanups::on_due(TokenRecord &record, Nanos now) { give(record, &Cleanup::on_due, now); }

void Cleanups::on_grant(TokenRecord &record, Nanos now) { give(record, &Cleanup::on_grant, now); }

void Cleanups::retry_now(TokenRecord &record, Nanos now) { give(record, &Cleanup::retry_now, now); }

void Cleanups::give(TokenRecord &record, Cleanup::Step (Cleanup::*event)(Nanos, bool), Nanos now) {
  perform(record, record.cleanup().give(event, now, redirects_.is_up(*record.lock)), now);
}

void Cleanups::start_renamed(Locks::NewTokens &tokens, Nanos now) noexcept {
  locks_.add_numbered(tokens);
  for (Locks::NewToken &one : tokens.all) {
    const ServerFootprint left = locks_.rename(one, now);
    start_with(*one.old, left, 0, now);
  }
}

// ---- the rest of a queue -----------------------------------------------------------------------

void Cleanups::on_script_answer(const Call &call, const protocol::CountAnswer &answer,
                                const std::shared_ptr<LockState> &lock, Nanos now) {
  owner_.note_time(*lock->server, call.sent_at, now, answer.server_ms);
  if (answer.has_more) serve_queue(lock, now);
}

void Cleanups::serve_queue(const std::shared_ptr<LockState> &lock, Nanos now) {
  if (!redirects_.is_up(*lock)) return;
  protocol::Command command;
  protocol::serve_queue(command, lock->server->features, protocol::EvalMode::kText, lock->keys);
  // Not sent for want of memory: the next poll of any waiter does the same.
  (void)lock->server->session.try_send(
      command, Call{&serve_queue_, protocol::EvalMode::kText, now, 0, lock});
}

void Cleanups::give_back_stale(Server &server, const protocol::Push &push, Nanos now) {
  const auto *place = server.ended_places.find(push.rid);
  if (place == nullptr || push.kind != protocol::Push::Kind::kGrant) return;
  auto lock = place->lock;
  // The slot may have moved since. That of a name in use is here.
  if (server.settings.is_of_cluster) lock = locks_.find(lock->name, lock->keys.format);
  if (!lock || lock->server != &server || !redirects_.is_up(*lock)) return;
  const std::string token =
      protocol::make_token(server.channel.cid(), push.rid, place->is_recallable);
  protocol::Command command;
  protocol::release(command, server.features, protocol::EvalMode::kText, lock->keys,
                    {token, place->claim}, place->yield_policy, 1);
  (void)server.session.try_send(
      command, Call{&serve_queue_, protocol::EvalMode::kText, now, 0, std::move(lock)});
}

void Cleanups::ServeQueue::on_answer(const Call &call, const Reply &reply, Nanos now) const {
  protocol::CountAnswer answer;
  if (decode(reply, answer)) return;
  cleanups.on_script_answer(call, answer, call.shared<LockState>(), now);
}

// ---- the commands ------------------------------------------------------------------------------

// A lock that is handed off without a pause is never free, so a library that polls never holds it
// and is never seen. A lock that is free now and then needs no search.
protocol::YieldPolicy Cleanups::yield_policy_at(const TokenRecord &record, Nanos now) const {
  protocol::YieldPolicy policy = record.yield_policy;
  if (policy.every != protocol::YieldPolicy::kAutomatic) return policy;
  if (!contention_.is_long(record.lock->keys.lock, now)) return policy;
  policy.every = protocol::YieldPolicy::kSearching;
  return policy;
}

void Cleanups::saw_free(const TokenRecord &record) {
  const bool is_reader = record.identity.mode == protocol::Mode::kRead;
  if (!is_reader) contention_.saw_free(record.lock->keys.lock);
}

void Cleanups::perform(TokenRecord &record, const Cleanup::Step &step, Nanos now,
                       protocol::EvalMode eval) {
  assert(step.result != Cleanup::Result::kDefect);
  if (step.result != Cleanup::Result::kNone) answer(record, step.result);
  if (step.is_over && !record.is_gone) locks_.forget(record);
  if (step.is_over) return;
  timers_.set(record, step.due);
  if (step.command == Cleanup::Command::kNone) return;
  const bool is_cancel = step.command == Cleanup::Command::kCancel;
  protocol::Command command;
  if (is_cancel) {
    protocol::cancel(command, record.server().features, eval, record.lock->keys,
                     record.identity.member, record.identity.claim());
  } else {
    protocol::release(command, record.server().features, eval, record.lock->keys, record.proof(),
                      yield_policy_at(record, now), 1 + record.cleanup()->handoff_count(),
                      record.note.get());
  }
  const Kind *kind = is_cancel ? &cancel_ : &release_;
  if (!record.server().session.try_send(command,
                                        Call{kind, eval, now, 0, record.shared_from_this()}))
    return;
  record.cleanup().give(&Cleanup::sent, step.command);
}

void Cleanups::on_answer(const Call &call, const Reply &reply, Nanos now) {
  TokenRecord &record = record_of(call);
  protocol::CountAnswer count;
  const auto refusal = decode(reply, count);
  if (record.is_gone) return;
  Checked<Cleanup> &cleanup = record.cleanup();
  const bool is_cancel = call.kind == &cancel_;
  if (refusal) {
    perform(record, cleanup.give(&Cleanup::on_refused), now);
    if (!is_cancel) {
      answer_releaser(record, refusal.status(), refusal_message(record.lock->name, refusal));
    }
    return;
  }
  on_script_answer(call, count, record.lock, now);
  if (!is_cancel && count.result == 1) saw_free(record);
  if (!is_cancel && record.note) settle_note(record, count);
  const bool is_up = redirects_.is_up(*record.lock);
  perform(record,
          is_cancel ? cleanup.give(&Cleanup::on_cancel_answer, count.result, now, is_up)
                    : cleanup.give(&Cleanup::on_release_answer, count.result, now, is_up),
          now);
}

void Cleanups::Kind::on_unknown_script(const Call &call, Nanos now) const {
  TokenRecord &record = record_of(call);
  if (record.is_gone) return;
  const bool is_up = cleanups.redirects_.is_up(*record.lock);
  const auto step = record.cleanup().give(&Cleanup::on_unknown_script, now, is_up);
  cleanups.perform(record, step, now, protocol::EvalMode::kText);
}

void Cleanups::Kind::on_lost(const Call &call, Nanos) const {
  TokenRecord &record = record_of(call);
  record.cleanup().give(&Cleanup::on_answer_lost, call.sent_at);
  if (!record.releaser) return;
  cleanups.timers_.set(*record.releaser, call.sent_at + cleanups.settings_.command_timeout);
}

void Cleanups::Kind::on_not_done(const Call &call, Nanos now) const {
  TokenRecord &record = record_of(call);
  if (record.is_gone) return;
  cleanups.limit_releaser(record, call.sent_at);
  cleanups.perform(record, record.cleanup().give(&Cleanup::on_refused), now);
}

bool Cleanups::Kind::on_postponed(const Call &call, Nanos retry_at, Nanos now) const {
  TokenRecord &record = record_of(call);
  if (record.is_gone) return true;
  cleanups.limit_releaser(record, call.sent_at);
  cleanups.perform(record, record.cleanup().give(&Cleanup::on_postponed, retry_at), now);
  return true;
}

void Cleanups::Kind::ask_again(const Call &call, Nanos now) const {
  cleanups.locks_.repeat_soon(record_of(call), now);
}

// ---- the caller of the release -----------------------------------------------------------------

void Cleanups::set_releaser(TokenRecord &record, std::shared_ptr<Request> releaser, Nanos now) {
  record.releaser = std::move(releaser);
  if (!record.releaser) return;
  record.releaser->record = &record;
  if (redirects_.is_up(*record.lock)) return;
  timers_.set(*record.releaser, now + settings_.command_timeout);
}

// The caller of a release that cannot be sent now waits no longer than for one that gets no answer.
void Cleanups::limit_releaser(TokenRecord &record, Nanos sent_at) {
  const bool has_limit = record.releaser && record.releaser->position != SIZE_MAX;
  if (!record.releaser || has_limit) return;
  timers_.set(*record.releaser, after(sent_at, settings_.command_timeout));
}

void Cleanups::answer_releaser(TokenRecord &record, Status status, std::string_view message) {
  if (!record.releaser) return;
  const auto releaser = std::move(record.releaser);
  releaser->record = nullptr;
  results_.finish(*releaser, status, message);
}

void Cleanups::answer_lost(TokenRecord &record) noexcept {
  if (!record.releaser) return;
  Lease &lease = *record.releaser->lease;
  lease.loss = LossReason::kGone;
  lease.reason = words::same(words::loss(lease.loss));
  answer_releaser(record, Status::kLost, words::lost(record.lock->name, lease.reason));
}

// The note is not sent again: a late copy of an ACQUIRE may take the lock again, and a repeated
// RELEASE would write an old value.
void Cleanups::settle_note(TokenRecord &record, const protocol::CountAnswer &release) {
  record.note = nullptr;
  if (release.is_unnoted) {
    answer_releaser(record, Status::kServer, words::not_noted(record.lock->name));
  } else if (release.result < 1 && record.cleanup()->was_release_lost()) {
    answer_releaser(record, Status::kOutcomeUnknown, words::kNoteUnknown);
  }
}

void Cleanups::answer(TokenRecord &record, Cleanup::Result result) {
  switch (result) {
    case Cleanup::Result::kNone:
      return;
    case Cleanup::Result::kReleased:
      return answer_releaser(record, Status::kOk);
    case Cleanup::Result::kStillHeld:
      return answer_releaser(record, Status::kStillHeld);
    case Cleanup::Result::kLost:
      return answer_lost(record);
    case Cleanup::Result::kUnknown:
      return answer_releaser(record, Status::kOutcomeUnknown, words::kUnansweredAtLeaseEnd);
    case Cleanup::Result::kDefect:
      return answer_releaser(record, Status::kInternal, results_.report_defect(Machine::kCleanup));
  }
}

}  // namespace redlatch::lock
