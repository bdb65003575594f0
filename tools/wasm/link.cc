// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "link.h"

#include <algorithm>
#include <new>
#include <utility>

#include "driver/services.h"

namespace redlatch::wasm {

Link::Link(Shared &shared, const Settings &settings, size_t node)
    : shared_(shared),
      settings_(settings),
      node_(node),
      connection_(settings, node, shared.log),
      side_(shared, connection_, node) {
  if (settings.has_sentinels()) sentinels_ = std::make_unique<Sentinels>(settings, shared.log);
}

void Link::tend(Nanos now) {
  if (sentinels_ && sentinels_->take_news()) {
    if (attempt_) attempt_->stop(now);
    drop();
  }
  if (attempt_) proceed(now);
  if (is_broken()) disconnect(now);
  connect(now);
  if (sentinels_) sentinels_->tend(attempt_ || connection_.is_made(), now);
  side_.tend(sentinels_ ? sentinels_->follower().primary() : settings_, now);
}

void Link::give_up(Nanos now) noexcept {
  drop();
  side_.give_up(now);
  if (sentinels_) sentinels_->give_up(now);
  if (!attempt_) return;
  attempt_->machine().fail({Status::kNoMemory, {}});
  try {
    finish(now);
  } catch (const std::bad_alloc &) {
    return;  // the service has scheduled the next attempt anyway
  }
}

void Link::flush() {
  if (commands_) commands_->flush();
  if (messages_) messages_->flush();
  side_.flush();
}

// ---- connecting --------------------------------------------------------------------------------

void Link::connect(Nanos now) {
  driver::PrimaryFollower *follower = sentinels_ ? &sentinels_->follower() : nullptr;
  if (attempt_ || !connection_.begin_attempt(service(), follower, now)) return;
  try {
    attempt_ = std::make_unique<Attempt<NodeAttempt>>(shared_.credentials, settings_, service(),
                                                      node_, follower);
  } catch (const std::bad_alloc &) {
    return service().on_connect_failed(node_, {Status::kNoMemory, {}}, now);
  }
  proceed(now);
}

void Link::proceed(Nanos now) {
  attempt_->proceed(now);
  if (attempt_->is_over()) finish(now);
}

void Link::finish(Nanos now) {
  using Result = NodeAttempt::Result;
  const auto ended = std::move(attempt_);
  NodeAttempt &machine = ended->machine();
  const Result result = machine.conclude();
  if (result == Result::kCluster && become_cluster(machine)) return;
  if (result == Result::kConnected) {
    commands_ = ended->host().take(driver::Dialogue::kCommands, *this);
    messages_ = ended->host().take(driver::Dialogue::kMessages, *this);
    connection_.make(machine.facts(), machine.login().login().number);
    authenticate();
  }
  connection_.on_attempt_over(service(), machine, shared_.is_alone(), now);
  if (result != Result::kConnected) return;
  for (const resp::ReplyPtr &push : ended->host().take_pushes()) {
    if (connection_.is_usable()) connection_.take_message(service(), *push, now);
  }
}

// On failure the attempt has failed.
bool Link::become_cluster(NodeAttempt &attempt) {
  const Randomness random;
  try {
    driver::become_cluster(shared_.service, shared_.nodes.front(), random.id, random.seed,
                           shared_.output, shared_.log);
  } catch (const std::bad_alloc &) {
    attempt.fail({Status::kNoMemory, {}});
    return false;
  }
  return true;
}

void Link::authenticate() noexcept {
  try {
    (void)connection_.authenticate(shared_.credentials.login(),
                                   [this](auto argv) { append(argv); });
  } catch (const std::bad_alloc &) {
    drop();
  }
  side_.authenticate();
}

void Link::disconnect(Nanos now) {
  connection_.end();
  commands_.reset();
  messages_.reset();
  service().on_disconnected(node_, now);
}

// ---- events ------------------------------------------------------------------------------------

void Link::on_replies(const Wire &wire, Replies replies, Nanos now) {
  const bool are_messages = &wire == messages_.get();
  for (const resp::ReplyPtr &reply : replies) {
    if (!connection_.is_usable()) return;
    if (are_messages) {
      connection_.take_message(service(), *reply, now);
    } else {
      shared_.note_refused(connection_.take(service(), *reply, now));
    }
  }
  if (are_messages) service().on_messages_heard(node_, now);
}

void Link::on_time(Nanos now) {
  if (attempt_) attempt_->on_time(now);
  if (sentinels_) sentinels_->on_time(now);
  side_.on_time(now);
}

Nanos Link::next_due() const {
  Nanos due = is_broken() ? 0 : side_.next_due();
  if (attempt_) due = std::min(due, attempt_->next_due());
  if (sentinels_) due = std::min(due, sentinels_->next_due());
  return due;
}

}  // namespace redlatch::wasm
