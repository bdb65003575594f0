// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "lock/confirmations.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/limits.h"
#include "timing/lease_clock.h"

namespace redlatch::lock {

namespace {

TokenRecord &record_of(Replication::Entry &entry) {
  return *static_cast<Confirmation &>(entry).record;
}

// The connection at the side is closed when it was not used for this long.
constexpr Nanos kUnused = 60'000 * kMs;

}  // namespace

// ---- what waits for replicas -------------------------------------------------------------------

bool Confirmations::start(TokenRecord &record, const std::shared_ptr<Request> &caller) {
  Replicas &replicas = record.replicas;
  replicas.entry = std::move(caller->replicas);
  if (!replicas.entry || replicas.count >= replicas.entry->replicas()) return false;
  replicas.caller = caller;
  caller->record = &record;
  want(record);
  return true;
}

bool Confirmations::start_upgrade(TokenRecord &record) {
  if (!record.replicas.entry || !record.upgrader) return false;
  record.replicas.count = 0;
  record.replicas.is_writer_unconfirmed = true;
  want(record);
  return true;
}

// No longer than what waits for the replicas.
void Confirmations::want(TokenRecord &record) {
  const Replicas &replicas = record.replicas;
  Nanos limit = kNever;
  if (replicas.caller && replicas.caller->wait_ms > 0) limit = replicas.caller->wait_until;
  if (replicas.is_writer_unconfirmed) limit = record.upgrader->due;
  replicas.entry->record = &record;
  replication_.give(&Replication::want, *replicas.entry, limit);
}

// After a new connection the lease may be held by a server whose replicas do not know it. It is
// held, so it stays, and the question is repeated with each renewal. Without renewal there is no
// write that could be counted.
void Confirmations::repeat(TokenRecord &record) {
  const Replicas &replicas = record.replicas;
  if (record.phase != TokenRecord::Phase::kHeld || !replicas.entry) return;
  if (replicas.entry->is_wanted() || replicas.count >= replicas.entry->replicas()) return;
  if (record.held()->is_renewed()) want(record);
}

std::shared_ptr<Request> Confirmations::end(TokenRecord &record) {
  Replicas &replicas = record.replicas;
  if (replicas.entry) replication_.give(&Replication::drop, *replicas.entry);
  auto caller = std::move(replicas.caller);
  if (caller) caller->record = nullptr;
  return caller;
}

void Confirmations::take_over(Confirmations &from, TokenRecord &record) {
  record.replicas.count = 0;
  const auto &entry = record.replicas.entry;
  if (!entry || !entry->is_wanted()) return;
  from.replication_.give(&Replication::drop, *entry);
  want(record);
}

// A lease that its caller has stays: it is held.
void Confirmations::refuse(TokenRecord &record, Status status, const std::string &why, Nanos now) {
  const std::string &lock = record.lock->name;
  const Replicas &replicas = record.replicas;
  if (replicas.caller || replicas.is_writer_unconfirmed) {
    return owner_.fail_confirmation(record, status, words::not_replicated(lock, why), now);
  }
  if (std::exchange(replicas.entry->is_reported, true)) return;
  output_.warn(words::held_unreplicated(lock, why));
}

// All that the WAIT was for.
void Confirmations::refuse_batch(Status status, const std::string &why, Nanos now) {
  while (Replication::Entry *entry = replication_.give(&Replication::on_refused)) {
    refuse(record_of(*entry), status, why, now);
  }
}

// All that wait.
void Confirmations::refuse_all(Status status, const std::string &why, Nanos now) {
  refuse_batch(status, why, now);
  while (Replication::Entry *entry = replication_.give(&Replication::take_due)) {
    refuse(record_of(*entry), status, why, now);
  }
}

Outcome Confirmations::why_late(const TokenRecord &record) noexcept {
  const int replicas = record.replicas.entry->replicas();
  return {Status::kNotReplicated, words::not_replicated_in_time(record.lock->name, replicas)};
}

// ---- the connection at the side ----------------------------------------------------------------

bool Confirmations::begin_connect(Nanos now) {
  if (!commands_.is_up() || !replication_->is_due() || !side_.begin_connect(now)) return false;
  is_outdated_ = false;
  return true;
}

void Confirmations::on_connected(Nanos now) {
  side_.on_connected();
  until_ = after(now, kUnused);
  if (is_outdated_) drop();
}

void Confirmations::on_connect_failed(const Outcome &why, Nanos now) {
  side_.on_connect_failed(why, now);
  if (is_outdated_ || !commands_.is_up()) return;
  refuse_all(why.status, words::no_connection_for_wait(why.message), now);
}

void Confirmations::on_disconnected(Nanos now) noexcept {
  side_.on_disconnected(false, now);
  replication_.give(&Replication::on_link_lost);
}

void Confirmations::drop() noexcept {
  is_outdated_ = true;
  if (side_.is_up()) side_.drop();
}

Nanos Confirmations::due() const {
  if (!commands_.is_up()) return kNever;
  if (side_.is_down()) return replication_->is_due() ? side_.connect_at() : kNever;
  if (!side_.is_up()) return kNever;
  return replication_->is_due() ? 0 : std::min(until_, replication_->put_off_until());
}

// A batch is due, or an answer is late, or the connection was not used for long.
void Confirmations::on_due(Nanos now) {
  if (!side_.is_up()) return;  // the next attempt is due
  while (Replication::Entry *entry = replication_.give(&Replication::take_up, now).entry) {
    refuse(record_of(*entry), Status::kNotReplicated,
           words::no_replica_asked(entry->timeout() / kMs), now);
  }
  if (replication_->is_due()) return send_batch(now);
  if (until_ <= now) drop();
}

void Confirmations::send_batch(Nanos now) {
  const auto eval = is_text_wanted_ ? protocol::EvalMode::kText : protocol::EvalMode::kDigest;
  is_text_wanted_ = false;
  try {
    for (auto *entry = replication_.give(&Replication::start); entry != nullptr;
         entry = Replication::next(*entry)) {
      TokenRecord &record = record_of(*entry);
      const Nanos ttl = timing::lease_within(record.held()->ttl(), now, record.held()->end_at());
      protocol::Command extend;
      owner_.write_extend(extend, record, ttl, eval, nullptr);
      side_.send(extend, Call{&extend_, eval, now, ttl, record.shared_from_this()});
      replication_.give(&Replication::sent, *entry, ttl, now);
    }
    const int64_t wait_ms = replication_->wait_ms(now);
    protocol::Command wait;
    protocol::wait_for_replicas(wait, replication_->replicas(), wait_ms);
    side_.send(wait, Call{&wait_, protocol::EvalMode::kText, now, 0, {}});
    until_ = after(now, wait_ms * kMs + settings_.command_timeout);
  } catch (const std::bad_alloc &) {
    drop();  // it is all repeated on the next connection
  }
}

// ---- answers -----------------------------------------------------------------------------------

void Confirmations::Extend::on_unknown_script(const Call &call, Nanos now) const {
  TokenRecord &record = record_of(call);
  if (!record.replicas.is_batched()) return;
  if (record.held()->is_over(now)) return confirmations.owner_.on_record_due(record, now);
  confirmations.is_text_wanted_ = true;
  confirmations.replication_.give(&Replication::on_unknown_script, *record.replicas.entry);
}

void Confirmations::on_extended(const Call &call, const Reply &reply, Nanos now) {
  TokenRecord &record = record_of(call);
  protocol::CountAnswer answer;
  const auto refusal = decode(reply, answer);
  if (!refusal) owner_.note_time(record.server(), call.sent_at, now, answer.server_ms);
  if (!record.replicas.is_batched()) return;
  if (record.held()->is_over(now)) return owner_.on_record_due(record, now);
  if (settings_.is_of_cluster && is_put_off(record, reply, now)) return;
  if (protocol::is_not_primary(reply)) return on_wait_refused(reply, now);
  if (refusal) {
    replication_.give(&Replication::drop, *record.replicas.entry);
    const Status status =
        protocol::lacks_replicas(reply) ? Status::kNotReplicated : refusal.status();
    return refuse(record, status, refusal.message, now);
  }
  if (answer.result < 1) return owner_.lose(record, loss_by(answer.result), true, now);
  replication_.give(&Replication::on_extended, *record.replicas.entry);
  owner_.prolong(record, call.sent_at, call.lease, now);
}

// The node cannot extend the lease now, because the slot is being moved: the replicas are asked a
// little later, or by the server that the lock goes to.
bool Confirmations::is_put_off(TokenRecord &record, const Reply &reply, Nanos now) {
  using Redirect = protocol::Redirect;
  const auto redirect = protocol::read_redirect(reply, {settings_.host, settings_.port});
  if (redirect.kind == Redirect::Kind::kNone) return false;
  const bool is_moved =
      redirect.kind == Redirect::Kind::kMoved && redirect.slot == record.lock->slot();
  if (is_moved || redirect.kind == Redirect::Kind::kDown) owner_.on_redirected(record, redirect);
  replication_.give(&Replication::on_put_off, *record.replicas.entry, commands_.next_retry(now));
  return true;
}

void Confirmations::Wait::on_answer(const Call &, const Reply &reply, Nanos now) const {
  if (reply.is_error()) {
    confirmations.on_wait_refused(reply, now);
  } else {
    confirmations.on_counted(reply.integer, now);
  }
  if (confirmations.side_.is_up()) confirmations.until_ = after(now, kUnused);
}

void Confirmations::on_counted(int64_t count, Nanos now) {
  using Verdict = Replication::Verdict;
  while (true) {
    const auto step = replication_.give(&Replication::on_counted, count, now);
    if (step.verdict == Verdict::kNone) return;
    if (step.verdict == Verdict::kAgain) continue;
    TokenRecord &record = record_of(*step.entry);
    const auto keep = record.shared_from_this();
    if (record.held()->is_over(now)) {
      owner_.on_record_due(record, now);
    } else if (step.verdict == Verdict::kConfirmed) {
      record.replicas.count = static_cast<int>(std::min<int64_t>(count, kMaxReplicas));
      record.replicas.entry->is_reported = false;
      owner_.on_confirmed(record);
    } else {
      const std::string why =
          words::too_few_replicas(count, step.entry->replicas(), step.entry->timeout() / kMs);
      refuse(record, Status::kNotReplicated, why, now);
    }
  }
}

// The server refused WAIT, or is no primary any more.
void Confirmations::on_wait_refused(const Reply &reply, Nanos now) {
  const auto refusal = protocol::refusal_of(reply);
  const std::string why = words::wait_refused(settings_, refusal.message);
  if (protocol::is_not_primary(reply)) {
    drop();
    return refuse_all(Status::kServer, why, now);
  }
  const bool is_unknown = refusal.kind == protocol::Refusal::Kind::kOther;
  refuse_batch(is_unknown ? Status::kUnsupported : refusal.status(), why, now);
}

}  // namespace redlatch::lock
