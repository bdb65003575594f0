// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "guide.h"

#include <algorithm>
#include <string>
#include <utility>

#include "client.h"
#include "group.h"
#include "memory.h"
#include "reply_view.h"

namespace redlatch::sim {

namespace {

constexpr Nanos kBackoff = 100 * kMs;  // between two attempts to watch a sentinel

}  // namespace

Guide::Guide(Client &client, Context &context, const Settings &settings)
    : client_(client),
      context_(context),
      settings_(settings),
      scout_(*this, &Guide::scout_takes, &Guide::scout_fails),
      post_(*this, &Guide::post_takes, &Guide::post_fails) {}

Nanos Guide::now() const { return client_.now(); }

// ---- connections -------------------------------------------------------------------------------

void Guide::End::received(uint64_t id, Messages messages) {
  if (id != link) return;
  if (guide.client_.is_paused()) {
    auto shared = std::make_shared<Messages>(std::move(messages));
    return guide.client_.later(0, [this, id, shared] { received(id, std::move(*shared)); });
  }
  for (const Message &message : messages) {
    if (id == link) (guide.*take)(message);
  }
}

void Guide::End::closed(uint64_t id) {
  if (id != link) return;
  if (guide.client_.is_paused()) return guide.client_.later(0, [this, id] { closed(id); });
  failed();
}

void Guide::End::failed() { (guide.*fail)(); }

bool Guide::is_parted(size_t sentinel) const {
  const auto found = parted_.find(sentinel);
  return found != parted_.end() && context_.schedule.now() < found->second;
}

// A sentinel that is down refuses at once; one that cannot be reached says nothing.
void Guide::dial(End &end, size_t sentinel, void (Guide::*dialled)()) {
  close(end);
  end.sentinel = sentinel;
  const Nanos way = context_.network.delay() + context_.network.delay();
  client_.later(way, [this, &end, dialled, number = end.number] {
    if (end.number != number || is_parted(end.sentinel)) return;
    Sentinel &dialled_one = context_.group->sentinel(end.sentinel);
    end.link = context_.network.open(end, dialled_one);
    if (!dialled_one.accept(end.link)) return end.failed();
    (this->*dialled)();
  });
}

void Guide::close(End &end) {
  end.number++;
  if (end.link != 0) context_.network.close(std::exchange(end.link, 0), Network::Ending::kSoon);
}

void Guide::hang_up(Network::Ending ending) {
  for (End *end : {&scout_, &post_}) {
    end->number++;
    if (end->link != 0) context_.network.close(std::exchange(end->link, 0), ending);
  }
}

void Guide::part_from(size_t sentinel, Nanos until) {
  parted_[sentinel] = std::max(parted_[sentinel], until);
  for (const End *end : {&scout_, &post_}) {
    if (end->link == 0 || end->sentinel != sentinel) continue;
    context_.network.stall(end->link, true, until);
    context_.network.stall(end->link, false, until);
  }
}

// ---- discovery ---------------------------------------------------------------------------------

void Guide::seek() {
  news_.reset();
  is_hurried_ = false;
  if (post_.number == 0) begin_watch(0);
  {
    const CoreMemory::Scope scope;
    discovery_.emplace(settings_, known_, now());
  }
  continue_seeking();
}

// Every event of a discovery goes through here.
template <class Event>
void Guide::step(const Event &event) {
  CommandList out;
  const sentinel::Send send = [&out](Argv argv) {
    const CoreMemory::Pause pause;
    out.emplace_back(argv);
  };
  {
    const CoreMemory::Scope scope;
    event(*discovery_, send);
  }
  if (const char *broken = discovery_->check()) {
    context_.verdict.broken("a discovery is legal", broken);
  }
  if (!out.empty()) context_.network.send_up(scout_.link, std::move(out));
  if (discovery_->stage() == sentinel::Discovery::Stage::kAsking) return watch_limit();
  continue_seeking();
}

void Guide::continue_seeking() {
  using Stage = sentinel::Discovery::Stage;
  switch (discovery_->stage()) {
    case Stage::kDialling: {
      const Settings &one = discovery_->sentinel();
      dial(scout_, number_in({one.host, one.port}), &Guide::scout_dialled);
      return watch_limit();
    }
    case Stage::kAsking:
      return;
    case Stage::kNamed:
      close(scout_);
      return client_.on_named(number_in(discovery_->primary()));
    case Stage::kOver: {
      close(scout_);
      const Outcome outcome = discovery_->outcome();
      {
        const CoreMemory::Scope scope;
        known_.others = discovery_->knowledge().others;
        known_.silent = discovery_->knowledge().silent;
      }
      discovery_.reset();
      return client_.on_not_found(outcome);
    }
  }
}

void Guide::scout_dialled() {
  step([](sentinel::Discovery &discovery, const sentinel::Send &send) {
    discovery.on_dialled(send);
  });
}

void Guide::scout_takes(const Message &message) {
  if (!discovery_ || discovery_->stage() != sentinel::Discovery::Stage::kAsking) return;
  const ReplyView view(message.value);
  step([&](sentinel::Discovery &discovery, const sentinel::Send &) {
    discovery.on_reply(view.get(), now());
  });
}

void Guide::scout_fails() {
  close(scout_);
  if (!discovery_ || discovery_->stage() == sentinel::Discovery::Stage::kNamed) return;
  step([&](sentinel::Discovery &discovery, const sentinel::Send &) {
    discovery.on_failed(failure(Status::kUnavailable, "the sentinel does not answer"), now());
  });
}

void Guide::watch_limit() {
  const Nanos limit = discovery_->limit();
  if (limit == kNever) return;
  const Nanos left = std::max<Nanos>(client_.when(limit) - context_.schedule.now(), 0);
  client_.later(left, [this, number = scout_.number, limit] {
    if (scout_.number == number && discovery_ && discovery_->limit() == limit) scout_fails();
  });
}

Nanos Guide::limit() const {
  const bool is_named = discovery_ && discovery_->stage() == sentinel::Discovery::Stage::kNamed;
  return is_named ? discovery_->limit() : kNever;
}

void Guide::refute(const Outcome &why) {
  step([&](sentinel::Discovery &discovery, const sentinel::Send &) {
    discovery.on_refuted(why, now());
  });
}

// A switch that came meanwhile counts more than what the discovery found.
bool Guide::confirm() {
  const CoreMemory::Scope scope;
  discovery_->on_confirmed();
  const sentinel::Knowledge &found = discovery_->knowledge();
  known_.others = found.others;
  known_.silent = found.silent;
  const auto news = std::exchange(news_, std::nullopt);
  const bool is_primary = !news || *news == found.primary;
  if (is_primary) {
    known_.epoch = found.epoch;
    known_.primary = found.primary;
    opinion_ = discovery_->opinion();
  }
  is_hurried_ = !is_primary;
  discovery_.reset();
  return is_primary;
}

// ---- the watch ---------------------------------------------------------------------------------

void Guide::begin_watch(size_t sentinel) {
  const size_t count = settings_.sentinel.addresses.size();
  dial(post_, sentinel % count, &Guide::post_dialled);
  sentinel_settings_ = settings_.of_sentinel(sentinel_address(sentinel % count));
  {
    const CoreMemory::Scope scope;
    watch_.reset();
  }
  client_.later(settings_.connect_timeout, [this, number = post_.number] {
    if (post_.number == number && !watch_) post_fails();
  });
}

void Guide::post_dialled() {
  CommandList out;
  {
    const CoreMemory::Scope scope;
    watch_.emplace(sentinel_settings_, settings_.sentinel.primary_name);
    watch_->start(
        [&out](Argv argv) {
          const CoreMemory::Pause pause;
          out.emplace_back(argv);
        },
        now());
  }
  context_.network.send_up(post_.link, std::move(out));
  watch_due();
}

void Guide::post_takes(const Message &message) {
  if (!watch_) return;
  note_told(message);
  const ReplyView view(message.value);
  Reply reply = view.get();
  if (message.kind == Message::Kind::kPush) reply.kind = Reply::Kind::kPush;
  CommandList out;
  std::optional<sentinel::Opinion> news;
  {
    const CoreMemory::Scope scope;
    news = watch_->on_reply(
        reply,
        [&out](Argv argv) {
          const CoreMemory::Pause pause;
          out.emplace_back(argv);
        },
        now());
  }
  if (!out.empty()) context_.network.send_up(post_.link, std::move(out));
  check_watch();
  if (news) on_news(*news);
}

// The old primary may accept writes for long: nothing more is sent to it.
void Guide::on_news(const sentinel::Opinion &opinion) {
  const bool is_known = !known_.primary.host.empty();
  if (!is_known || !sentinel::has_moved(opinion, known_.primary, known_.epoch)) return;
  {
    const CoreMemory::Scope scope;
    sentinel::note_switch(known_, opinion, now());
    known_.primary = news_.emplace(opinion.primary);
  }
  is_hurried_ = true;
  close(scout_);
  {
    const CoreMemory::Scope scope;
    discovery_.reset();
  }
  client_.on_moved();
}

// For the rule that a client leaves the server of which it hears that it is no primary any more.
void Guide::note_told(const Message &message) {
  const auto &items = message.value.items;
  if (message.kind != Message::Kind::kPush || items.size() != 3) return;
  if (items[0].text != "message") return;
  const std::string &text = items[2].text;
  const size_t begin = text.find(' ') + 1;
  client_.note_told(number_in({text.substr(begin, text.find(' ', begin) - begin), ""}));
}

void Guide::post_fails() {
  const size_t next = post_.sentinel + 1;
  close(post_);
  {
    const CoreMemory::Scope scope;
    watch_.reset();
  }
  client_.later(kBackoff, [this, next, number = post_.number] {
    if (post_.number == number) begin_watch(next);
  });
}

void Guide::check_watch() {
  if (const char *broken = watch_->check()) context_.verdict.broken("a watch is legal", broken);
  watch_->is_over() ? post_fails() : watch_due();
}

void Guide::watch_due() {
  const Nanos due = watch_->next_due();
  watch_number_++;
  if (due == kNever) return;
  const Nanos left = std::max<Nanos>(client_.when(due) - context_.schedule.now(), 0);
  client_.later(left, [this, number = watch_number_] {
    if (number != watch_number_ || !watch_) return;
    CommandList out;
    {
      const CoreMemory::Scope scope;
      watch_->on_timer(
          [&out](Argv argv) {
            const CoreMemory::Pause pause;
            out.emplace_back(argv);
          },
          now());
    }
    if (!out.empty()) context_.network.send_up(post_.link, std::move(out));
    check_watch();
  });
}

}  // namespace redlatch::sim
