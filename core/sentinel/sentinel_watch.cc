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

constexpr std::string_view kChannel = "+switch-master";
constexpr Nanos kSilence = 5'000 * kMs;

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
  is_pinged_ = false;
  due_ = after(now, stage_ == Stage::kWatching ? kSilence : settings_.command_timeout);
  if (reply.kind == Reply::Kind::kPush) {
    auto news = on_push(reply, send);
    if (stage_ == Stage::kWatching) due_ = after(now, kSilence);
    return news;
  }
  switch (stage_) {
    case Stage::kHello: {
      auto outcome = check_hello(reply, settings_);
      if (!outcome.ok()) {
        end(std::move(outcome));
        return std::nullopt;
      }
      stage_ = Stage::kSubscribing;
      protocol::Command subscribe;
      send(subscribe.add("SUBSCRIBE").add(kChannel).argv());
      return std::nullopt;
    }
    case Stage::kSubscribing:  // a push confirms it, and a reply refuses it
      end(refused(reply, settings_));
      return std::nullopt;
    case Stage::kAsking:
      return on_answer(reply);
    case Stage::kWatching:  // to PING
    case Stage::kOver:
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<Opinion> SentinelWatch::on_push(const Reply &reply, const Send &send) {
  const std::string_view kind = reply.at(0).text();
  if (kind == "subscribe" && stage_ == Stage::kSubscribing) {
    stage_ = Stage::kAsking;
    ask(kAddress, primary_name_, send);
    ask(kPrimary, primary_name_, send);
  }
  if (kind != "message" || reply.at(1).text() != kChannel) return std::nullopt;
  return read_switch(std::string(reply.at(2).text()));
}

std::optional<Opinion> SentinelWatch::on_answer(const Reply &reply) {
  if (answer_count_++ == 0) {
    answer_.sentinel = sentinel();
    auto outcome = read_address(reply, settings_, primary_name_, answer_.primary);
    if (!outcome.ok()) end(std::move(outcome));
    return std::nullopt;
  }
  answer_.epoch = read_epoch(reply);
  stage_ = Stage::kWatching;
  return answer_;
}

// "<name> <old host> <old port> <new host> <new port>"
std::optional<Opinion> SentinelWatch::read_switch(const std::string &text) const {
  std::array<std::string_view, 5> words;
  std::string_view rest = text;
  for (std::string_view &word : words) {
    word = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
  }
  Opinion news;
  news.sentinel = sentinel();
  news.is_switch = true;
  if (words[0] != primary_name_ || !read_host_port(words[3], words[4], news.primary)) {
    return std::nullopt;
  }
  return news;
}

void SentinelWatch::on_timer(const Send &send, Nanos now) {
  if (stage_ == Stage::kOver || now < due_) return;
  if (stage_ != Stage::kWatching || is_pinged_) {
    return end(failure(Status::kUnavailable, "sentinel " + sentinel().text() + ": no answer"));
  }
  is_pinged_ = true;
  due_ = after(now, settings_.command_timeout);
  protocol::Command ping;
  send(ping.add("PING").argv());
}

void SentinelWatch::end(Outcome why) {
  stage_ = Stage::kOver;
  due_ = kNever;
  is_pinged_ = false;
  outcome_ = std::move(why);
}

const char *SentinelWatch::check() const {
  if ((stage_ == Stage::kOver) == outcome_.ok()) return "a watch ends for a reason";
  if (stage_ == Stage::kOver && due_ != kNever) return "what is over has no time limit";
  if (is_pinged_ && stage_ != Stage::kWatching)
    return "only a silent watch asks for a sign of life";
  return nullptr;
}

bool has_moved(const Opinion &opinion, const HostPort &primary, int64_t epoch) {
  if (opinion.primary == primary) return false;
  return opinion.is_switch || opinion.epoch > epoch;
}

}  // namespace redlatch::sentinel
