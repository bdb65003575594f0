// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// LockClient: the health of the server. Nothing depends on it, and nothing waits for it but the
// request that asked.
#include <new>
#include <utility>

#include "lock/calls.h"

namespace redlatch::lock {

namespace {

// A proxy may end a connection that asks what it does not know.
constexpr int kMaxLostChecks = 2;

}  // namespace

void LockClient::check_later(size_t, Nanos due) {
  if (session_.is_up() && !is_shut_ && lost_check_count_ < kMaxLostChecks) check_at_ = due;
}

// `request`: that waits for the answers; nullptr in the background, where a lack of memory ends it.
void LockClient::ask_health(const std::shared_ptr<Request> &request, Nanos now) {
  if (!request) check_at_ = kNever;
  if (!session_.is_up()) return;
  std::shared_ptr<Checkup> checkup;
  try {
    checkup = std::make_shared<Checkup>();
    checkup->request = request;
    checkup->check = protocol::HealthCheck(settings_.is_of_cluster);
    const auto ask = [&](protocol::Command &command) {
      session_.send(command, Call{&calls_->health, protocol::EvalMode::kText, now, 0, checkup});
    };
    // First: a checkup that could not be sent as a whole is never over.
    const std::string_view tag = settings_.is_of_cluster ? channel_.name() : std::string_view();
    if (request) checkup->trial.emplace(settings_.name_space, channel_.cid(), *last_id_ += 2, tag);
    checkup->check.ask(ask);
    if (checkup->trial) checkup->trial->ask(features_, ask);
  } catch (const std::bad_alloc &) {
    if (!request) return;
    // The request ends now, and answers to its first questions may still come, or be lost.
    if (checkup) {
      checkup->request.reset();
      checkup->is_lost = true;
    }
    throw;
  }
}

void LockClient::on_health_reply(const Call &call, const Reply &reply, Nanos now) {
  Checkup &checkup = call.about<Checkup>();
  const bool is_of_trial = checkup.check.is_over();
  if (!is_of_trial) checkup.check.on_reply(reply, call.sent_at, now);
  if (is_of_trial && checkup.trial) checkup.trial->on_reply(reply);
  if (!checkup.is_over()) return;
  output_.health_found(node_, checkup.check.facts(), checkup.trial ? &*checkup.trial : nullptr);
  const auto request = checkup.request;
  if (request && !request->is_finished()) finish_immediate(*request, Status::kOk);
}

// The message comes before the last replies of the trial, unless it has a connection of its own.
// @return whether it is for the trial of a checkup.
bool LockClient::note_trial_push(uint64_t rid) {
  for (const Call &call : session_.in_flight()) {
    if (call.kind != &calls_->health) continue;
    auto &trial = call.about<Checkup>().trial;
    if (!trial || !trial->is_waiter(rid)) continue;
    trial->on_grant_push();
    return true;
  }
  return false;
}

// A request that may wait asks again on the next connection.
void LockClient::lose_health(Checkup &checkup) {
  if (std::exchange(checkup.is_lost, true) || checkup.is_over()) return;
  if (!checkup.request) {
    lost_check_count_++;
  } else if (checkup.request->wait_ms == 0 && !checkup.request->is_finished()) {
    finish_immediate(*checkup.request, session_.lost().status, session_.lost().message);
  }
}

}  // namespace redlatch::lock
