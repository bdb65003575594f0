// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "operate/health.h"

#include <new>
#include <string_view>
#include <utility>

namespace redlatch::operate {

namespace {

constexpr int kMostLost = 2;

}  // namespace

Health::Health(const Settings &settings, session::Session &session, const session::Channel &channel,
               size_t node, Owner &owner)
    : settings_(settings), session_(session), channel_(channel), node_(node), owner_(owner) {}

void Health::check_at(Nanos due) {
  if (due == kNever || (session_.is_up() && lost_count_ < kMostLost)) check_at_ = due;
}

void Health::send(const std::shared_ptr<Checkup> &checkup, const protocol::ServerFeatures &features,
                  Nanos now) {
  const auto send = [&](protocol::Command &command) {
    session_.send(command, {&question_, protocol::EvalMode::kText, now, 0, checkup});
  };
  checkup->check = protocol::HealthCheck(settings_.is_of_cluster);
  checkup->check.ask(send);
  if (checkup->trial) checkup->trial->ask(features, send);
}

void Health::check(const protocol::ServerFeatures &features, Nanos now) {
  check_at_ = kNever;
  if (!session_.is_up()) return;
  try {
    send(std::make_shared<Checkup>(), features, now);
  } catch (const std::bad_alloc &) {
    return;  // a lack of memory ends it
  }
}

void Health::ask(std::shared_ptr<void> request, uint64_t rid,
                 const protocol::ServerFeatures &features, Nanos now) {
  if (!session_.is_up()) return;
  const auto checkup = std::make_shared<Checkup>();
  checkup->request = std::move(request);
  // First: a checkup that could not be sent as a whole is never over.
  const std::string_view tag = settings_.is_of_cluster ? channel_.name() : std::string_view();
  checkup->trial.emplace(settings_.name_space, channel_.cid(), rid, tag);
  try {
    send(checkup, features, now);
  } catch (const std::bad_alloc &) {
    // The request ends now, and answers to its first questions may still come, or be lost.
    checkup->request.reset();
    checkup->is_lost = true;
    throw;
  }
}

void Health::Question::on_answer(const session::Call &call, const Reply &reply, Nanos now) const {
  Checkup &checkup = call.about<Checkup>();
  const bool is_of_trial = checkup.check.is_over();
  if (!is_of_trial) checkup.check.on_reply(reply, call.sent_at, now);
  if (is_of_trial && checkup.trial) checkup.trial->on_reply(reply);
  if (!checkup.is_over()) return;
  health.owner_.on_health(health.node_, checkup.check.facts(),
                          checkup.trial ? &*checkup.trial : nullptr);
  if (checkup.request) health.owner_.on_health_answered(checkup.request);
}

void Health::Question::on_lost(const session::Call &call, Nanos) const {
  Checkup &checkup = call.about<Checkup>();
  if (std::exchange(checkup.is_lost, true) || checkup.is_over()) return;
  if (checkup.request) {
    health.owner_.on_health_lost(checkup.request);
  } else {
    health.lost_count_++;
  }
}

bool Health::note_push(uint64_t rid) {
  for (const session::Call &call : session_.in_flight()) {
    if (call.kind != &question_) continue;
    auto &trial = call.about<Checkup>().trial;
    if (!trial || !trial->is_waiter(rid)) continue;
    trial->on_grant_push();
    return true;
  }
  return false;
}

}  // namespace redlatch::operate
