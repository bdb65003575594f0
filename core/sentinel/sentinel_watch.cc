// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "sentinel/sentinel_watch.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "protocol/command.h"

namespace redlatch::sentinel {

namespace {

constexpr std::string_view kSwitched = "+switch-master";
// The sentinel that leads a failover sends it, up to seconds before its +switch-master.
constexpr std::string_view kPromoted = "+promoted-slave";
constexpr size_t kChannelCount = 2;
constexpr Nanos kSilence = 3'000 * kMs;

using Words = std::array<std::string_view, 8>;

Words split(std::string_view text) {
  Words words;
  for (std::string_view &word : words) {
    word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
  }
  return words;
}

}  // namespace

SentinelWatch::SentinelWatch(const Settings &sentinel, std::string primary_name)
    : settings_(sentinel), primary_name_(std::move(primary_name)) {}

void SentinelWatch::start(const Send &send, Nanos now) {
  assert(stage_ == Stage::kHello && due_ == kNever);
  due_ = after(now, settings_.command_timeout);
  say_hello(settings_, send);
}

std::optional<Opinion> SentinelWatch::on_reply(const Reply &reply, const Send &send, Nanos now) {
  if (stage_ == Stage::kOver) return std::nullopt;
  const bool is_push = reply.kind == Reply::Kind::kPush;
  std::optional<Opinion> news;
  if (is_push) {
    news = on_push(reply, send);
  } else {
    switch (stage_) {
      case Stage::kHello: {
        auto outcome = check_hello(reply, settings_);
        if (!outcome.ok()) {
          end(std::move(outcome));
          break;
        }
        stage_ = Stage::kSubscribing;
        for (const std::string_view channel : {kPromoted, kSwitched}) {
          protocol::Command subscribe;
          send(subscribe.add("SUBSCRIBE").add(channel).argv());
        }
        break;
      }
      case Stage::kSubscribing:  // a push confirms a channel, and a reply refuses it
        // A user may have the right to the second one only.
        if (subscribed_count_++ > 0) end(refused(reply, settings_));
        break;
      case Stage::kAsking:
        news = on_answer(reply, send);
        break;
      case Stage::kWatching:  // more than it was asked for
      case Stage::kOver:
        break;
    }
  }
  if (stage_ == Stage::kOver) return std::nullopt;
  due_ = after(now, stage_ == Stage::kWatching ? kSilence : settings_.command_timeout);
  return news;
}

std::optional<Opinion> SentinelWatch::on_push(const Reply &reply, const Send &send) {
  const std::string_view kind = reply.at(0).text();
  if (kind == "subscribe" && stage_ == Stage::kSubscribing) {
    if (++subscribed_count_ == kChannelCount) ask_again(send);
  }
  if (kind != "message") return std::nullopt;
  auto news = read_message(reply.at(1).text(), reply.at(2).text());
  if (news && is_subscribed()) ask_again(send);
  return news;
}

// The epoch first: if the sentinel learns of a switch between the two, its new address has the old
// epoch, which changes nothing. The old address in the new epoch would hide the switch.
void SentinelWatch::ask_again(const Send &send) {
  assert(subscribed_count_ == kChannelCount);
  must_repeat_ = stage_ == Stage::kAsking;
  if (must_repeat_) return;
  stage_ = Stage::kAsking;
  answer_count_ = 0;
  ask(kPrimary, primary_name_, send);
  ask(kAddress, primary_name_, send);
}

std::optional<Opinion> SentinelWatch::on_answer(const Reply &reply, const Send &send) {
  if (answer_count_++ == 0) {
    answer_.sentinel = sentinel();
    answer_.epoch = read_epoch(reply);
    return std::nullopt;
  }
  auto outcome = read_address(reply, settings_, primary_name_, answer_.primary);
  if (!outcome.ok()) {
    end(std::move(outcome));
    return std::nullopt;
  }
  stage_ = Stage::kWatching;
  if (must_repeat_) ask_again(send);
  return answer_;
}

// "<name> <old host> <old port> <new host> <new port>", or of a replica that was promoted
// "slave <its name> <its host> <its port> @ <name> <old host> <old port>".
std::optional<Opinion> SentinelWatch::read_message(std::string_view channel,
                                                   std::string_view text) const {
  const Words words = split(text);
  Opinion news;
  news.sentinel = sentinel();
  news.is_switch = true;
  bool is_ours = false;
  if (channel == kSwitched) {
    is_ours = words[0] == primary_name_ && read_host_port(words[3], words[4], news.primary);
  } else if (channel == kPromoted) {
    is_ours = words[5] == primary_name_ && read_host_port(words[2], words[3], news.primary);
  }
  if (!is_ours) return std::nullopt;
  return news;
}

void SentinelWatch::on_timer(const Send &send, Nanos now) {
  if (stage_ == Stage::kOver || now < due_) return;
  if (stage_ != Stage::kWatching) {
    return end(failure(Status::kUnavailable, "sentinel " + sentinel().text() + ": no answer"));
  }
  ask_again(send);
  due_ = after(now, settings_.command_timeout);
}

void SentinelWatch::end(Outcome why) {
  assert(stage_ != Stage::kOver && !why.ok());
  stage_ = Stage::kOver;
  due_ = kNever;
  must_repeat_ = false;
  outcome_ = std::move(why);
}

const char *SentinelWatch::check() const {
  if ((stage_ == Stage::kOver) == outcome_.ok()) return "a watch ends for a reason";
  if (stage_ == Stage::kOver && due_ != kNever) return "what is over has no time limit";
  if (must_repeat_ && stage_ != Stage::kAsking) return "only a question is repeated";
  if (is_subscribed() && subscribed_count_ != kChannelCount) return "all channels are heard";
  return nullptr;
}

}  // namespace redlatch::sentinel
