// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "link.h"

#include <algorithm>
#include <new>
#include <utility>

#include "driver/primary_attempt.h"
#include "driver/server_attempt.h"
#include "driver/services.h"
#include "driver/slot_reading.h"

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
  if (shared_.is_shut) return;
  if (sentinels_ && sentinels_->take_news()) {
    if (dial_ && dial_->attempt() != nullptr) dial_->attempt()->end(now);
    drop();
  }
  if (dial_) dial_->proceed(now);
  if (dial_ && dial_->is_over()) finish(now);
  if (is_broken()) disconnect(now);
  connect(now);
  if (sentinels_) sentinels_->tend(dial_ || connection_.is_made(), now);
  side_.tend(sentinels_ ? sentinels_->follower().primary() : settings_, now);
}

void Link::give_up(Nanos now) noexcept {
  drop();
  side_.drop();
  if (!std::exchange(dial_, nullptr)) return;
  try {
    service().on_connect_failed(node_, {Status::kNoMemory, {}}, now);
  } catch (const std::bad_alloc &) {
    return;  // the service has scheduled the next attempt anyway
  }
}

void Link::flush() {
  if (commands_) commands_->flush();
  if (messages_) messages_->flush();
  side_.flush();
}

void Link::close() {
  dial_.reset();
  commands_.reset();
  messages_.reset();
  side_.close();
  if (sentinels_) sentinels_->close();
}

// ---- connecting --------------------------------------------------------------------------------

std::unique_ptr<driver::Dialogue> Link::dialogue(const Settings &settings, const Attempt *before,
                                                 Nanos now) {
  if (settings_.is_cluster()) {
    return std::make_unique<driver::SlotReading>(settings, service().known_servers(), now);
  }
  const std::string &channel = service().channel(node_);
  if (sentinels_) {
    auto known = before != nullptr ? before->as<driver::PrimaryAttempt>().knowledge()
                                   : sentinels_->follower().begin_attempt();
    return std::make_unique<driver::PrimaryAttempt>(settings, channel, std::move(known), now);
  }
  return std::make_unique<driver::ServerAttempt>(settings, channel, service().needs_identity(),
                                                 now);
}

void Link::connect(Nanos now) {
  if (dial_ || connection_.is_made()) return;
  if (sentinels_ && sentinels_->follower().take_hurry()) service().connect_soon(node_, now);
  if (!service().begin_connect(node_, now)) return;
  try {
    dial_ = std::make_unique<Dial>(
        settings_, shared_.credentials,
        [this](const Settings &settings, const Attempt *before, Nanos time) {
          return dialogue(settings, before, time);
        },
        now);
  } catch (const std::bad_alloc &) {
    return service().on_connect_failed(node_, {Status::kNoMemory, {}}, now);
  }
  if (dial_->is_over()) finish(now);  // there is no server to ask, or no password
}

// The dial stays in its place while there may be no memory: give_up() reports its end.
void Link::finish(Nanos now) {
  Outcome outcome = dial_->outcome();
  Attempt *attempt = dial_->attempt();
  if (settings_.is_cluster()) {
    const auto ended = std::move(dial_);
    if (!outcome.ok()) return connection_.on_slots_over(service(), outcome, {}, {}, now);
    const auto &slots = attempt->as<driver::SlotReading>();
    return connection_.on_slots_over(service(), outcome, slots.facts(), slots.ranges(), now);
  }
  ServerFacts facts;
  if (sentinels_ && attempt != nullptr) {
    const auto &found = attempt->as<driver::PrimaryAttempt>();
    if (outcome.ok()) facts = found.facts();
    sentinels_->follower().on_attempt_over(sentinel::Knowledge(found.knowledge()),
                                           sentinel::Opinion(found.opinion()), outcome);
  } else if (outcome.ok()) {
    facts = attempt->as<driver::ServerAttempt>().facts();
  }
  const auto ended = std::move(dial_);
  if (!outcome.ok()) return connection_.on_attempt_over(service(), outcome, facts, false, now);
  if (driver::is_found_cluster(shared_.nodes.front(), shared_.quorum.has_value(), facts)) {
    return become_cluster(now);
  }
  commands_ = attempt->take(driver::Dialogue::kCommands, *this);
  messages_ = attempt->take(driver::Dialogue::kMessages, *this);
  connection_.make(facts, ended->login());
  authenticate();
  connection_.on_attempt_over(service(), outcome, facts, shared_.is_alone(), now);
  if (sentinels_) sentinels_->follower().note_success(facts);
  for (const resp::ReplyPtr &push : attempt->take_pushes()) {
    if (connection_.is_usable()) connection_.take_message(service(), *push, now);
  }
}

void Link::become_cluster(Nanos now) {
  const Randomness random;
  try {
    const std::string text = settings_.address() + " is a node of a cluster";
    driver::become_cluster(shared_.service, shared_.nodes.front(), random.id, random.seed,
                           shared_.output);
    shared_.log.add(driver::LogLevel::kInfo, text);
  } catch (const std::bad_alloc &) {
    service().on_connect_failed(node_, {Status::kNoMemory, {}}, now);
  }
}

void Link::authenticate() {
  (void)connection_.authenticate(shared_.credentials.login(), [this](auto argv) { append(argv); });
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
    if (are_messages) {
      connection_.take_message(service(), *reply, now);
    } else {
      shared_.note_refused(connection_.take(service(), *reply, now));
    }
  }
  if (are_messages) service().on_messages_heard(node_, now);
}

void Link::on_time(Nanos now) {
  if (dial_) dial_->on_time(now);
  if (sentinels_) sentinels_->on_time(now);
  side_.on_time(now);
}

Nanos Link::next_due() const {
  Nanos due = is_broken() ? 0 : side_.next_due();
  if (dial_) due = std::min(due, dial_->next_due());
  if (sentinels_) due = std::min(due, sentinels_->next_due());
  return due;
}

}  // namespace redlatch::wasm
