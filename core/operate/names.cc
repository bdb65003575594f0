// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "operate/names.h"

#include <algorithm>
#include <new>
#include <utility>

#include "protocol/answer.h"
#include "protocol/command.h"

namespace redlatch::operate {

namespace {

// The key outlives a client that crashes: its waiters are still shown by name for a while.
constexpr int64_t kNameExpiryMs = 60'000;
constexpr Nanos kNameRenewal = 20'000 * kMs;
constexpr auto kText = protocol::EvalMode::kText;

}  // namespace

Names::Names(const Settings &settings, session::Session &session, const session::Channel &channel,
             Owner &owner)
    : settings_(settings),
      session_(session),
      channel_(channel),
      owner_(owner),
      text_(protocol::name_text(settings.holder)) {}

// ---- the name of this client -------------------------------------------------------------------

void Names::on_connected() {
  may_announce_ = true;
  announce_again_at_ = 0;
}

void Names::announce_by(Nanos due) {
  if (due < announce_at_) announce_at_ = std::max(due, announce_again_at_);
}

void Names::announce(Nanos wanted_at, Nanos now) {
  announce_at_ = kNever;
  if (!session_.is_up() || !may_announce_) return;
  if (wanted_at > now) {
    announce_at_ = wanted_at;
    return;
  }
  protocol::Command command;
  protocol::announce(command, channel_.name(), text_, kNameExpiryMs);
  if (session_.try_send(command, {&announce_kind_, kText, now, 0, {}})) {
    announce_again_at_ = now + kNameRenewal;
  }
  announce_at_ = now + kNameRenewal;
}

void Names::withdraw(Nanos now) {
  announce_at_ = kNever;
  may_announce_ = false;
  if (!session_.is_up() || announce_again_at_ == 0) return;
  protocol::Command command;
  protocol::withdraw_name(command, channel_.name());
  // Not sent, or not answered before the end: it expires.
  (void)session_.try_send(command, {&announce_kind_, kText, now, 0, {}});
}

void Names::Announce::on_answer(const session::Call &, const Reply &reply, Nanos) const {
  names.may_announce_ = names.may_announce_ && !reply.is_error();
}

// ---- the names of others -----------------------------------------------------------------------

bool Names::ask(std::shared_ptr<NameQuery> query, Nanos now) {
  if (!session_.is_up()) return false;
  const std::string key = channel_.prefix() + query->cid;
  protocol::Command command;
  protocol::ask_name(command, key);
  known_.note_asked(query->cid, now);
  return session_.try_send(command, {&ask_kind_, kText, now, 0, std::move(query)});
}

void Names::Ask::on_answer(const session::Call &call, const Reply &reply, Nanos now) const {
  names.on_answer(call.about<NameQuery>(), &reply, now);
}

void Names::Ask::on_lost(const session::Call &call, Nanos now) const {
  names.on_answer(call.about<NameQuery>(), nullptr, now);
}

std::optional<uint16_t> Names::Ask::slot(const session::Call &call) const {
  return call.about<NameQuery>().slot();
}

// Without memory the name stays unknown, and the query ends all the same.
void Names::on_answer(NameQuery &query, const Reply *reply, Nanos now) {
  std::string name;
  try {
    if (reply != nullptr) {
      name = protocol::decode_name(*reply);
      known_.note_answer(query.cid, name, now);
    }
  } catch (const std::bad_alloc &) {
    name.clear();  // when to ask again was noted before
  }
  owner_.on_name(query, name, now);
}

}  // namespace redlatch::operate
