// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// LockClient: the names of clients. Each client that queues, or holds for longer than a moment,
// writes its name to a key of its own (docs/wire.md, "Names of clients"); others read it when they
// show a lock to people.
#include <algorithm>
#include <new>
#include <utility>

#include "lock/calls.h"

namespace redlatch::lock {

namespace {

// A client that holds for less sends no command for its name.
constexpr Nanos kMoment = 500 * kMs;
// The key outlives a client that crashes: its waiters are still shown by name for a while.
constexpr int64_t kNameExpiryMs = 60'000;
constexpr Nanos kNameRenewal = 20'000 * kMs;

constexpr std::string_view kHolderIs = "; holder: ";

std::string_view client_of(std::string_view token) { return token.substr(0, protocol::kCidSize); }

void fill(protocol::InspectAnswer &info, std::string_view cid, std::string_view name) {
  const auto is_its = [cid](std::string_view token) {
    return protocol::is_token(token) && client_of(token) == cid;
  };
  if (info.who.empty() && is_its(info.value)) info.who = name;
  for (auto &holder : info.holders) {
    if (is_its(holder.token)) holder.who = name;
  }
  for (auto &waiter : info.waiters) {
    if (is_its(waiter.token)) waiter.who = name;
  }
}

std::vector<std::string> clients_in(const protocol::InspectAnswer &info) {
  std::vector<std::string> cids;
  const auto add = [&cids](std::string_view token) {
    if (protocol::is_token(token)) cids.emplace_back(client_of(token));
  };
  if (info.who.empty()) add(info.value);
  for (const auto &holder : info.holders) add(holder.token);
  for (const auto &waiter : info.waiters) add(waiter.token);
  std::sort(cids.begin(), cids.end());
  cids.erase(std::unique(cids.begin(), cids.end()), cids.end());
  return cids;
}

}  // namespace

// ---- the name of this client -------------------------------------------------------------------

void LockClient::announce_by(Nanos due) {
  if (due < announce_at_) announce_at_ = std::max(due, announce_again_at_);
}

void LockClient::announce_held(Nanos now) { announce_by(now + kMoment); }

void LockClient::announce(Nanos now) {
  announce_at_ = kNever;
  if (!session_.is_up() || !may_announce_) return;
  Nanos due = kNever;
  for (const auto &[id, record] : records_) {
    if (record->phase == Phase::kQueued) due = now;
    if (record->phase == Phase::kHeld) due = std::min(due, record->held()->granted_at() + kMoment);
    if (due <= now) break;
  }
  if (due > now) {
    announce_at_ = due;
    return;
  }
  protocol::Command command;
  protocol::announce(command, channel_.name(), name_text_, kNameExpiryMs);
  if (session_.try_send(command, Call{&calls_->announce, protocol::EvalMode::kText, now, 0, {}})) {
    announce_again_at_ = now + kNameRenewal;
  }
  announce_at_ = now + kNameRenewal;
}

void LockClient::withdraw_name(Nanos now) {
  announce_at_ = kNever;
  may_announce_ = false;
  if (!session_.is_up() || announce_again_at_ == 0) return;
  protocol::Command command;
  protocol::withdraw_name(command, channel_.name());
  // Not sent, or not answered before the end: it expires.
  (void)session_.try_send(command, Call{&calls_->announce, protocol::EvalMode::kText, now, 0, {}});
}

// ---- the names of others -----------------------------------------------------------------------

bool LockClient::ask_name(std::shared_ptr<NameQuery> query, Nanos now) {
  if (!session_.is_up()) return false;
  const std::string key = channel_.prefix() + query->cid;
  protocol::Command command;
  protocol::ask_name(command, key);
  names_of_clients_.note_asked(query->cid, now);
  return session_.try_send(
      command, Call{&calls_->ask_name, protocol::EvalMode::kText, now, 0, std::move(query)});
}

// @return whether the answer to an inspection waits for names.
bool LockClient::name_clients(const std::shared_ptr<Request> &request, Nanos now) {
  RequestArguments &arguments = *request->arguments;
  arguments.unnamed_count = 0;
  for (auto &cid : clients_in(arguments.info)) {
    if (cid == channel_.cid()) {
      fill(arguments.info, cid, settings_.holder);
      continue;
    }
    auto query = std::make_shared<NameQuery>();
    query->cid = std::move(cid);
    query->request = request;
    if (ask_name(std::move(query), now)) arguments.unnamed_count++;
  }
  return arguments.unnamed_count > 0;
}

// @return whether a refused try is answered later, when the name of the holder is known.
bool LockClient::awaits_name(TokenRecord &record, const std::string &message, Nanos now) {
  const std::string_view cid = record.lock->blocker;
  if (cid.empty() || cid == channel_.cid() || !names_of_clients_.is_due(cid, now)) return false;
  auto query = std::make_shared<NameQuery>();
  query->cid = cid;
  // A vote is one of several answers: it does not wait for the name, which the next round knows.
  if (!record.is_vote) {
    query->record = record.shared_from_this();
    query->message.reserve(message.size() + kHolderIs.size() + kMaxLabelBytes);
    query->message = message;
  }
  return ask_name(std::move(query), now) && !record.is_vote;
}

void LockClient::ask_wanted_name(LockState &lock, Nanos now) {
  if (!lock.is_name_wanted || lock.blocker.empty()) return;
  lock.is_name_wanted = false;
  if (lock.blocker == channel_.cid() || !names_of_clients_.is_due(lock.blocker, now)) return;
  auto query = std::make_shared<NameQuery>();
  query->cid = lock.blocker;
  (void)ask_name(std::move(query), now);
}

// The request will most likely time out: ask who the holder is.
void LockClient::on_slow(Request &request, Nanos now) {
  timers_.set(request, request.wait_until);
  if (is_confirming(request)) return;
  LockState &lock = *request.lock;
  TokenRecord *record = request.record != nullptr ? request.record : place_of(lock);
  if (record == nullptr || now < lock.blocker_due) return;
  lock.blocker_due = now + ClientNames::kRetryAfter;
  lock.is_name_wanted = true;
  if (record->phase == Phase::kQueued) ask(*record, now);
}

// Without a reply the connection has ended, and without memory the name stays unknown.
void LockClient::note_name(NameQuery &query, const Reply *reply, Nanos now) noexcept {
  if (reply == nullptr) return;
  try {
    const std::string name = protocol::decode_name(*reply);
    names_of_clients_.note_answer(query.cid, name, now);
    if (!name.empty()) query.message.append(kHolderIs).append(name);
    if (query.request) fill(query.request->arguments->info, query.cid, name);
  } catch (const std::bad_alloc &) {
    return;  // when to ask again was noted before
  }
}

// With or without the name: otherwise the request or the try that waits for it would be stuck.
void LockClient::on_name(NameQuery &query, const Reply *reply, Nanos now) {
  note_name(query, reply, now);
  const auto record = std::exchange(query.record, nullptr);
  if (record && !record->is_gone && front_of(*record) != nullptr)
    refuse_try(*record, Status::kBusy, query.message, now);
  const auto &request = query.request;
  if (request && !request->is_finished() && --request->arguments->unnamed_count == 0) {
    finish_immediate(*request, Status::kOk);
  }
}

// A thread that waits for a lock that it shares waits as well, unless both read or share by one
// owner.
bool LockClient::waits_for_itself(const Request &request) const {
  const bool is_waiting = request.op == Request::Op::kAcquire && request.wait_ms != 0;
  if (!is_waiting || request.waiter == 0 || !request.lock || is_confirming(request)) return false;
  const LockState &lock = *request.lock;
  const auto is_in_the_way = [&](const TokenRecord &record) {
    if (record.lock.get() != &lock || record.phase != Phase::kHeld) return false;
    if (!record.lease || record.lease->starter != request.waiter) return false;
    const AcquireOptions &options = request.options;
    const bool is_again = lock.keys.format == protocol::Format::kHash;
    return is_again ? record.identity.owner != options.owner
                    : record.identity.mode != protocol::Mode::kRead ||
                          options.mode != protocol::Mode::kRead;
  };
  if (lock.holder != nullptr) return is_in_the_way(*lock.holder);
  return lock.has_sharers && std::any_of(records_.begin(), records_.end(), [&](const auto &entry) {
           return is_in_the_way(*entry.second);
         });
}

const Lease *LockClient::lease_on(std::string_view name) const {
  const auto found = names_.find({protocol::Format::kString, name});
  const TokenRecord *holder = found == names_.end() ? nullptr : found->second->holder;
  return holder == nullptr ? nullptr : holder->lease.get();
}

std::string_view LockClient::blocker_of(std::string_view name) const {
  const auto found = names_.find({protocol::Format::kString, name});
  return found == names_.end() ? std::string_view() : std::string_view(found->second->blocker);
}

std::string LockClient::holder_text(std::string_view cid) const {
  if (cid == channel_.cid()) return std::string(kHolderIs) + "this client";
  const std::string_view name = names_of_clients_.find(cid);
  return name.empty() ? std::string() : std::string(kHolderIs).append(name);
}

}  // namespace redlatch::lock
