// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "peer.h"

#include <cinttypes>
#include <cstdio>
#include <vector>

#include "caller.h"

namespace redlatch::sim {

namespace {

constexpr Nanos kPollInterval = 100 * kMs;
constexpr int kAttempts = 30;
constexpr std::string_view kReleaseIfMine =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return "
    "0 end";
// The owner is the first argument, because Rules::read() expects that.
constexpr std::string_view kTakeHash =
    "if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[1]) == 1 then\n"
    "redis.call('hincrby', KEYS[1], ARGV[1], 1)\n"
    "redis.call('pexpire', KEYS[1], ARGV[2])\n"
    "return redis.status_reply('OK')\nend\nreturn redis.call('pttl', KEYS[1])";
constexpr std::string_view kGiveHash =
    "if redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return false end\n"
    "if redis.call('hincrby', KEYS[1], ARGV[1], -1) > 0 then return 0 end\n"
    "redis.call('del', KEYS[1])\nredis.call('publish', KEYS[2], '0')\nreturn 1";

Clock clock_of(const Plan &plan, int number) {
  Random random(plan.seed, 40 + static_cast<uint64_t>(number));
  const Nanos start = random.between(1, 1'000'000) * kMs;
  return {start, random.between(-plan.rate_limit_ppm, plan.rate_limit_ppm)};
}

}  // namespace

Peer::Peer(Context &context, int number)
    : context_(context),
      number_(number),
      clock_(clock_of(context.plan, number)),
      random_(context.plan.seed, 60 + static_cast<uint64_t>(number)) {}

void Peer::later(Nanos delay, void (Peer::*action)()) {
  context_.schedule.in(delay, [this, action, turn = ++turn_] {
    if (turn == turn_) (this->*action)();
  });
}

void Peer::begin() { think(); }

void Peer::think() {
  is_asking_ = false;
  attempt_count_ = 0;
  // Not as arguments of one call, because their order of evaluation is unspecified.
  const uint64_t high = random_.next(), low = random_.next();
  char token[33];
  snprintf(token, sizeof token, "%016" PRIx64 "%016" PRIx64, high, low);
  token_ = token;
  name_ = std::string(kNamespace) +
          lock_name(static_cast<int>(random_.below(static_cast<size_t>(context_.plan.name_count))));
  if (is_hash()) {
    const bool has_tag = name_.find('{') != std::string::npos;
    channel_ = "redisson_lock__channel:" + (has_tag ? name_ : "{" + name_ + "}");
  }
  lease_ = random_.between(200, 3000) * kMs;
  later(random_.between(0, context_.plan.think_max), &Peer::ask);
}

void Peer::send(Argv argv) {
  if (link_channel_ != channel_) hang_up();
  if (!context_.network.is_open(link_)) {
    link_channel_ = channel_;
    link_ = context_.network.open(*this, *context_.servers.front());
    skipped_count_ = 0;
    if (!context_.servers.front()->accept(link_, Server::kPeerProtocol)) return hang_up();
    if (!channel_.empty()) {
      const std::vector<std::string_view> subscribe = {"SUBSCRIBE", channel_};
      CommandList first;
      first.emplace_back(subscribe);
      context_.network.send_up(link_, std::move(first));
    }
  }
  CommandList commands;
  commands.emplace_back(argv);
  context_.network.send_up(link_, std::move(commands));
}

void Peer::ask() {
  if (!context_.is_working || ++attempt_count_ > kAttempts) {
    if (context_.is_working) think();
    return;
  }
  is_asking_ = true;
  sent_at_ = clock_.read(context_.schedule.now());
  const std::string lease = std::to_string(lease_ / kMs);
  const std::vector<std::string_view> take = {"SET", name_, token_, "NX", "PX", lease};
  const std::vector<std::string_view> take_hash = {"EVAL", kTakeHash, "1", name_, token_, lease};
  send(is_hash() ? take_hash : take);
  later(context_.plan.timeout, &Peer::give_up);
}

// No reply within the timeout: close the connection, which drops late replies.
void Peer::give_up() {
  hang_up();
  think();
}

void Peer::hang_up() {
  if (link_ != 0) context_.network.close(link_, Network::Ending::kSoon);
  link_ = 0;
}

void Peer::received(uint64_t link, Messages messages) {
  for (const Message &message : messages) {
    if (link == link_) take(message);
  }
}

void Peer::take(const Message &message) {
  if (message.kind != Message::Kind::kReply) {
    if (attempt_count_ > 0 && !is_asking_ && !is_holding_) later(0, &Peer::ask);
    return;
  }
  if (skipped_count_ > 0) {
    skipped_count_--;
    return;
  }
  if (!is_asking_) return;
  is_asking_ = false;
  if (message.value.kind != Value::Kind::kStatus) return later(kPollInterval, &Peer::ask);
  // The same safety margin as ours; not all libraries have one.
  const Nanos deadline = sent_at_ + lease_ - lease_ / 100 - 2 * kMs;
  context_.beliefs.begin(name_.substr(kNamespace.size()),
                         {-number_ - 1, &clock_, nullptr, deadline, token_});
  context_.beliefs.check();
  context_.stats.inject(Fault::kForeign, true);
  is_holding_ = true;
  later(random_.between(0, context_.plan.hold_max), &Peer::release);
}

void Peer::release() {
  context_.beliefs.end_foreign(name_.substr(kNamespace.size()), -number_ - 1);
  is_holding_ = false;
  const std::vector<std::string_view> give = {"EVAL", kReleaseIfMine, "1", name_, token_};
  const std::vector<std::string_view> give_hash = {"EVAL", kGiveHash, "2", name_, channel_, token_};
  send(is_hash() ? give_hash : give);
  skipped_count_++;
  think();
}

void Peer::closed(uint64_t) { link_ = 0; }

}  // namespace redlatch::sim
