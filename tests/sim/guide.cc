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

Guide::Guide(Client &client, Context &context, const Settings &settings, driver::Log &log)
    : client_(client), context_(context), settings_(settings), follower_(settings, log) {
  for (size_t i = 0; i < settings.sentinel.addresses.size(); i++) {
    posts_.push_back(std::make_unique<End>(*this));
    posts_.back()->slot = i;
    posts_.back()->undisturbed = context.schedule.now();
  }
}

Nanos Guide::now() const { return client_.now(); }

// ---- connections -------------------------------------------------------------------------------

void Guide::End::received(uint64_t id, Messages messages) {
  if (id != link) return;
  if (guide.client_.is_paused()) {
    auto shared = std::make_shared<Messages>(std::move(messages));
    return guide.client_.later(0, [this, id, shared] { received(id, std::move(*shared)); });
  }
  for (const Message &message : messages) {
    if (id == link) guide.post_takes(*this, message);
  }
}

void Guide::End::closed(uint64_t id) {
  if (id != link) return;
  if (guide.client_.is_paused()) return guide.client_.later(0, [this, id] { closed(id); });
  guide.post_fails(*this);
}

bool Guide::is_parted(size_t sentinel) const {
  const auto found = parted_.find(sentinel);
  return found != parted_.end() && context_.schedule.now() < found->second;
}

// A sentinel that is down refuses at once; one that cannot be reached says nothing.
void Guide::dial(End &end, size_t sentinel) {
  close(end);
  end.sentinel = sentinel;
  const Nanos way = context_.network.delay() + context_.network.delay();
  client_.later(way, [this, &end, number = end.number] {
    if (end.number != number || is_parted(end.sentinel)) return;
    Sentinel &dialled_one = context_.group->sentinel(end.sentinel);
    end.link = context_.network.open(end, dialled_one);
    if (!dialled_one.accept(end.link)) return post_fails(end);
    post_dialled(end);
  });
}

void Guide::close(End &end) {
  end.number++;
  if (end.link != 0) context_.network.close(std::exchange(end.link, 0), Network::Ending::kSoon);
}

void Guide::hang_up(Network::Ending ending) {
  watch_number_++;
  for (const auto &end : posts_) {
    end->number++;
    if (end->link != 0) context_.network.close(std::exchange(end->link, 0), ending);
  }
}

void Guide::part_from(size_t sentinel, Nanos until) {
  parted_[sentinel] = std::max(parted_[sentinel], until);
  (void)disturb(sentinel);
  for (const auto &end : posts_) {
    if (end->link == 0 || end->sentinel != sentinel) continue;
    context_.network.stall(end->link, true, until);
    context_.network.stall(end->link, false, until);
  }
}

// By the address, because the rule must not depend on what the watch does.
uint64_t Guide::disturb(size_t sentinel) {
  posts_[sentinel]->undisturbed = context_.schedule.now();
  return posts_[sentinel]->link;
}

Nanos Guide::heard_since(size_t sentinel) const {
  if (is_parted(sentinel) || !context_.group->sentinel(sentinel).is_up()) return kNever;
  const auto found = parted_.find(sentinel);
  const Nanos healed = found == parted_.end() ? 0 : found->second;
  return std::max(
      {posts_[sentinel]->undisturbed, healed, context_.group->sentinel(sentinel).up_since()});
}

// ---- the watch ---------------------------------------------------------------------------------

// Every event of a connection to a sentinel goes through here.
template <class Event>
void Guide::watch(End &end, const Event &event) {
  CommandList out;
  const sentinel::Send send = [&out](Argv argv) {
    const CoreMemory::Pause pause;
    out.emplace_back(argv);
  };
  {
    const CoreMemory::Scope scope;
    event(send);
  }
  if (const char *broken = follower_.watch().check()) {
    context_.verdict.broken("a watch is legal", broken);
  }
  if (!out.empty()) context_.network.send_up(end.link, std::move(out));
  if (follower_.watch().is_over(end.slot)) return post_fails(end);
  watch_due();
}

void Guide::tend_watch() {
  for (;;) {
    std::optional<size_t> slot;
    {
      const CoreMemory::Scope scope;
      slot = follower_.watch().begin_dial(now());
    }
    if (!slot) break;
    End &end = *posts_[*slot];
    if (!end.redials.begin(now())) {
      context_.verdict.broken(
          "a sentinel that is away is dialled ever more seldom",
          "client " + std::to_string(client_.slot()) + ", slot " + std::to_string(*slot));
    }
    const Settings dialled = follower_.watch().settings_of(*slot);
    dial(end, number_in({dialled.host, dialled.port}));
    client_.later(settings_.connect_timeout, [this, &end, number = end.number] {
      if (end.number == number && end.link == 0) post_fails(end);
    });
  }
  watch_due();
}

void Guide::post_dialled(End &end) {
  end.said_epoch = -1;
  context_.trace.say(context_.schedule.now(), "client %d watches sentinel %zu", client_.slot(),
                     end.sentinel);
  watch(end, [&](const sentinel::Send &send) {
    follower_.watch().on_dialled(end.slot, follower_.watch().settings_of(end.slot), send, now());
  });
}

void Guide::post_takes(End &end, const Message &message) {
  note_epoch(end, message);
  note_told(end, message);
  const ReplyView view(message.value);
  Reply reply = view.get();
  if (message.kind == Message::Kind::kPush) reply.kind = Reply::Kind::kPush;
  end.redials.may_restart();
  bool is_news = false;
  const int64_t epoch_before = epoch();
  watch(end, [&](const sentinel::Send &send) {
    is_news = follower_.on_reply(end.slot, reply, send, now());
  });
  // It answers questions once it has taken the subscription.
  if (end.said_epoch >= 0 && end.link != 0) end.redials.must_restart();
  if (!is_news) return;
  context_.trace.say(context_.schedule.now(), "client %d has news from sentinel %zu",
                     client_.slot(), end.sentinel);
  client_.check_news(epoch_before);
  client_.on_moved();
}

void Guide::note_epoch(End &end, const Message &message) {
  if (message.kind != Message::Kind::kReply) return;
  const auto &items = message.value.items;
  const auto name = std::find_if(items.begin(), items.end(),
                                 [](const Value &item) { return item.text == "config-epoch"; });
  if (name != items.end() && name + 1 != items.end()) end.said_epoch = std::stoll((name + 1)->text);
}

// For the rule that a client leaves the server of which it hears that it is no primary any more.
// One that is late may say it of a server that has become the primary again. A sentinel whose last
// answer was behind may speak of an earlier switch: its next answer decides, and may never come.
void Guide::note_told(const End &end, const Message &message) {
  const auto &items = message.value.items;
  if (message.kind != Message::Kind::kPush || items.size() != 3) return;
  if (items[0].text != "message" || items[1].text != "+switch-master") return;
  if (end.said_epoch < epoch()) return;
  const std::string &text = items[2].text;
  const size_t begin = text.find(' ') + 1;
  const size_t old_primary = number_in({text.substr(begin, text.find(' ', begin) - begin), ""});
  const int64_t known = context_.group->sentinel(end.sentinel).view().epoch;
  if (known > context_.group->epoch_of(old_primary)) client_.note_told(old_primary);
}

void Guide::post_fails(End &end) {
  context_.trace.say(context_.schedule.now(), "client %d does not watch sentinel %zu",
                     client_.slot(), end.sentinel);
  close(end);
  end.redials.ended(now(), false);
  {
    const CoreMemory::Scope scope;
    follower_.on_ended(end.slot, {}, end.number, false, now());
  }
  watch_due();
}

void Guide::check_redials() const {
  if (client_.is_paused()) return;
  for (const auto &end : posts_) {
    if (!end->redials.is_too_long(client_.clock_.read(client_.paused_until()), now())) continue;
    context_.verdict.broken(
        "a sentinel is dialled again in time",
        "client " + std::to_string(client_.slot()) + ", sentinel " + std::to_string(end->slot));
  }
}

void Guide::watch_due() {
  const Nanos due = follower_.watch().next_due(true);
  watch_number_++;
  if (due == kNever) return;
  const Nanos left = std::max<Nanos>(client_.when(due) - context_.schedule.now(), 0);
  client_.later(left, [this, number = watch_number_] {
    if (number != watch_number_) return;
    for (const auto &post : posts_) {
      if (post->link == 0) continue;
      watch(*post, [&](const sentinel::Send &send) {
        follower_.watch().on_timer(post->slot, send, now());
      });
    }
    tend_watch();
  });
}

}  // namespace redlatch::sim
