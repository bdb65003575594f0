// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// LockClient: replicas that confirm. A lease that wants them is held from its grant on, and renewed
// as any other; its caller gets it when enough replicas have it. WAIT counts only what its own
// connection has written, and blocks what is behind it: so it has a connection of its own, at the
// side, where each lease is extended in front of it.
#include <algorithm>
#include <new>
#include <utility>

#include "base/limits.h"
#include "base/text.h"
#include "lock/calls.h"
#include "timing/lease_clock.h"

namespace redlatch::lock {

namespace {

TokenRecord &record_of(Replication::Entry &entry) {
  return *static_cast<Confirmation &>(entry).record;
}

// The connection at the side is closed when it was not used for this long.
constexpr Nanos kSideUnused = 60'000 * kMs;

std::string count_of(int64_t count, const Replication::Entry &entry) {
  return std::to_string(count) + " of " + std::to_string(entry.replicas()) +
         (entry.replicas() == 1 ? " replica" : " replicas") + " confirmed within " +
         in_seconds(entry.timeout() / kMs);
}

}  // namespace

// ---- what waits for replicas -------------------------------------------------------------------

// True if the lease of `request` is granted, and not given yet.
bool LockClient::is_confirming(const Request &request) {
  return request.op == Request::Op::kAcquire && request.record != nullptr &&
         request.record->confirmer.get() == &request;
}

// `limit`: the caller waits no longer.
void LockClient::confirm(TokenRecord &record, Nanos limit) {
  record.replicas->record = &record;
  replication_.give(&Replication::want, *record.replicas, limit);
}

// A lease that its caller has: after a new connection it may be held by a server whose replicas do
// not know it. It is held, so it stays, and the question is repeated with each renewal. Without
// renewal there is no write that could be counted.
void LockClient::confirm_again(TokenRecord &record) {
  if (record.phase != Phase::kHeld || !record.replicas || record.replicas->is_wanted()) return;
  if (record.confirmed_by >= record.replicas->replicas() || !record.held()->is_renewed()) return;
  confirm(record, kNever);
}

// @return the caller that waited for the replicas, if it has not got the lease yet.
std::shared_ptr<Request> LockClient::end_confirmation(TokenRecord &record) {
  if (record.replicas) replication_.give(&Replication::drop, *record.replicas);
  auto caller = std::move(record.confirmer);
  if (caller) caller->record = nullptr;
  return caller;
}

// The lease is released, or reads again, and its caller gets the reason.
void LockClient::fail_confirmation(TokenRecord &record, Status status, std::string_view message,
                                   Nanos now) {
  const auto keep = record.shared_from_this();
  const auto caller = end_confirmation(record);
  if (!caller) return give_up_upgrade(record, status, message, now);
  finish(*caller, status, message);
  give_back(record, nullptr, now);
}

// A lease that its caller has stays: it is held.
void LockClient::refuse_confirmation(TokenRecord &record, Status status, const std::string &why,
                                     Nanos now) {
  const std::string lock = "lock " + quoted(record.lock->name);
  const bool has_caller = record.confirmer || record.is_writer_unconfirmed;
  if (has_caller) return fail_confirmation(record, status, lock + ": " + why, now);
  if (std::exchange(record.replicas->is_reported, true)) return;
  output_.warn(lock + " is held, but " + why + ": replicas are asked again with each renewal");
}

// All that the WAIT was for.
void LockClient::refuse_batch(Status status, const std::string &why, Nanos now) {
  while (Replication::Entry *entry = replication_.give(&Replication::on_refused)) {
    refuse_confirmation(record_of(*entry), status, why, now);
  }
}

// All that wait.
void LockClient::refuse_all(Status status, const std::string &why, Nanos now) {
  refuse_batch(status, why, now);
  while (Replication::Entry *entry = replication_.give(&Replication::take_due)) {
    refuse_confirmation(record_of(*entry), status, why, now);
  }
}

// The lease has ended before the caller got it. Even without memory for the reason.
void LockClient::finish_lost(Request &caller, const Lease &lease) noexcept {
  try {
    finish(caller, Status::kNotReplicated,
           "lock " + quoted(lease.name) + " was granted, and lost before its replicas confirmed" +
               (lease.reason.empty() ? "" : ": " + lease.reason));
  } catch (const std::bad_alloc &) {
    finish(caller, Status::kNotReplicated);
  }
}

// The lease reads again: the server is asked to downgrade it.
void LockClient::roll_back_writer(TokenRecord &record, Nanos now) {
  record.become_reader();
  carry_out(record,
            record.ensure_upgrade().give(&Upgrade::on_found_writing, now, readiness_of(record)),
            now);
}

Outcome LockClient::why_unconfirmed(const TokenRecord &record) {
  const int wanted = record.replicas->replicas();
  return failure(Status::kNotReplicated,
                 "lock " + quoted(record.lock->name) + ": fewer than " + std::to_string(wanted) +
                     (wanted == 1 ? " replica" : " replicas") + " confirmed within the wait");
}

// ---- the connection at the side ----------------------------------------------------------------

bool LockClient::begin_side_connect(size_t, Nanos now) {
  if (!session_.is_up() || !replication_->is_due() || !side_.begin_connect(now)) return false;
  is_side_outdated_ = false;
  return true;
}

void LockClient::on_side_connected(size_t, Nanos now) {
  side_.on_connected();
  side_until_ = after(now, kSideUnused);
  // The other connection has ended meanwhile: the next one may be to another server.
  if (is_side_outdated_) drop_side();
}

void LockClient::on_side_connect_failed(size_t, const Outcome &why, Nanos now) {
  side_.on_connect_failed(why, now);
  if (is_side_outdated_ || !session_.is_up()) return;
  refuse_all(why.status, "no connection for WAIT, which min_replicas needs: " + why.message, now);
}

void LockClient::on_side_disconnected(size_t, Nanos now) noexcept {
  side_.on_disconnected(false, now);
  replication_.give(&Replication::on_link_lost);
}

void LockClient::drop_side() noexcept {
  is_side_outdated_ = true;
  if (side_.is_up()) side_.drop();
}

Nanos LockClient::side_due() const {
  if (!session_.is_up()) return kNever;
  if (side_.is_down()) return replication_->is_due() ? side_.connect_at() : kNever;
  if (!side_.is_up()) return kNever;
  return replication_->is_due() ? 0 : std::min(side_until_, replication_->put_off_until());
}

// A batch is due, or an answer is late, or the connection was not used for long.
void LockClient::on_side_due(Nanos now) {
  if (!side_.is_up()) return;  // the next attempt is due
  while (Replication::Entry *entry = replication_.give(&Replication::take_up, now).entry) {
    const std::string why = "replicas were not asked within " + in_seconds(entry->timeout() / kMs) +
                            ", because the slot of the lock is being moved to another node of the "
                            "cluster, or has no primary";
    refuse_confirmation(record_of(*entry), Status::kNotReplicated, why, now);
  }
  if (replication_->is_due()) return send_batch(now);
  if (side_until_ <= now) drop_side();
}

void LockClient::send_batch(Nanos now) {
  const auto eval = is_side_text_wanted_ ? protocol::EvalMode::kText : protocol::EvalMode::kDigest;
  is_side_text_wanted_ = false;
  try {
    for (auto *entry = replication_.give(&Replication::start); entry != nullptr;
         entry = Replication::next(*entry)) {
      TokenRecord &record = record_of(*entry);
      const Nanos ttl = timing::lease_within(record.held()->ttl(), now, record.held()->end_at());
      protocol::Command extend;
      write_extend(extend, record, ttl, eval, nullptr);
      side_.send(extend, Call{&calls_->side_extend, eval, now, ttl, record.shared_from_this()});
      replication_.give(&Replication::sent, *entry, ttl, now);
    }
    const int64_t wait_ms = replication_->wait_ms(now);
    protocol::Command wait;
    protocol::wait_for_replicas(wait, replication_->replicas(), wait_ms);
    side_.send(wait, Call{&calls_->wait, protocol::EvalMode::kText, now, 0, {}});
    side_until_ = after(now, wait_ms * kMs + settings_.command_timeout);
  } catch (const std::bad_alloc &) {
    drop_side();  // it is all repeated on the next connection
  }
}

// ---- answers -----------------------------------------------------------------------------------

void LockClient::on_side_reply(size_t, const Reply &reply, Nanos now) {
  if (side_.is_up()) side_.on_reply(reply, now);
}

void LockClient::on_wait_reply(const Reply &reply, Nanos now) {
  if (reply.is_error()) {
    on_wait_refused(reply, now);
  } else {
    on_counted(reply.integer, now);
  }
  if (side_.is_up()) side_until_ = after(now, kSideUnused);
}

// True if the extension that is under way there is still wanted.
bool LockClient::is_batched(const TokenRecord &record) {
  return !record.is_gone && record.phase == Phase::kHeld && record.replicas &&
         record.replicas->is_batched();
}

void LockClient::on_side_extended(const Call &call, const Reply &reply, Nanos now) {
  TokenRecord &record = record_of(call);
  protocol::CountAnswer answer;
  const auto refusal = decode(reply, answer);
  if (!refusal) note_time(call.sent_at, now, answer.server_ms);
  if (!is_batched(record)) return;
  if (record.held()->is_over(now)) return on_record_due(record, now);
  if (settings_.is_of_cluster && is_put_off(record, reply, now)) return;
  if (protocol::is_not_primary(reply)) return on_wait_refused(reply, now);
  if (refusal) {
    replication_.give(&Replication::drop, *record.replicas);
    const Status status =
        protocol::lacks_replicas(reply) ? Status::kNotReplicated : refusal.status();
    return refuse_confirmation(record, status, refusal.message, now);
  }
  if (answer.result < 1) return lose(record, loss_by(answer.result), true, now);
  replication_.give(&Replication::on_extended, *record.replicas);
  prolong(record, call.sent_at, call.lease, now);
}

// The node cannot extend the lease now, because the slot is being moved: the replicas are asked a
// little later, or by the client that takes the lock over.
bool LockClient::is_put_off(TokenRecord &record, const Reply &reply, Nanos now) {
  using Kind = protocol::Redirect::Kind;
  const auto redirect = protocol::read_redirect(reply, {settings_.host, settings_.port});
  if (redirect.kind == Kind::kNone) return false;
  const bool is_moved = redirect.kind == Kind::kMoved && redirect.slot == record.lock->slot();
  if (is_moved || redirect.kind == Kind::kDown) output_.redirected(node_, redirect);
  if (is_moved) hold_back(redirect.slot);
  replication_.give(&Replication::on_put_off, *record.replicas, session_.next_retry(now));
  return true;
}

void LockClient::on_counted(int64_t count, Nanos now) {
  using Verdict = Replication::Verdict;
  while (true) {
    const auto step = replication_.give(&Replication::on_counted, count, now);
    if (step.verdict == Verdict::kNone) return;
    if (step.verdict == Verdict::kAgain) continue;
    TokenRecord &record = record_of(*step.entry);
    const auto keep = record.shared_from_this();
    if (record.held()->is_over(now)) {
      on_record_due(record, now);
    } else if (step.verdict == Verdict::kConfirmed) {
      on_confirmed(record, count);
    } else {
      refuse_confirmation(record, Status::kNotReplicated, count_of(count, *step.entry), now);
    }
  }
}

void LockClient::on_confirmed(TokenRecord &record, int64_t count) {
  record.confirmed_by = static_cast<int>(std::min<int64_t>(count, kMaxReplicas));
  record.replicas->is_reported = false;
  const auto caller = end_confirmation(record);
  if (caller) return finish(*caller, Status::kOk);
  if (record.is_writer_unconfirmed) finish_upgrade(record, Status::kOk);
}

// The server refused WAIT, or is no primary any more.
void LockClient::on_wait_refused(const Reply &reply, Nanos now) {
  const auto refusal = protocol::refusal_of(reply);
  const std::string why = settings_.address() + " refused WAIT, which min_replicas needs: ";
  if (protocol::is_not_primary(reply)) {
    drop_side();
    return refuse_all(Status::kServer, why + refusal.message, now);
  }
  const bool is_unknown = refusal.kind == protocol::Refusal::Kind::kOther;
  refuse_batch(is_unknown ? Status::kUnsupported : refusal.status(), why + refusal.message, now);
}

}  // namespace redlatch::lock
