// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "sentinel.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace redlatch::sim {

namespace {

constexpr std::string_view kSwitch = "+switch-master";
constexpr std::string_view kPromoted = "+promoted-slave";

Value text(std::string_view words) { return Value::of(std::string(words)); }

Message reply(Value value) { return {Message::Kind::kReply, std::move(value)}; }

Message push(Value value) { return {Message::Kind::kPush, std::move(value)}; }

}  // namespace

HostPort server_address(size_t server) { return {"10.0.0." + std::to_string(server + 1), "6379"}; }

HostPort sentinel_address(size_t sentinel) {
  return {"10.0.1." + std::to_string(sentinel + 1), "26379"};
}

size_t number_in(const HostPort &address) {
  return static_cast<size_t>(std::stoi(address.host.substr(address.host.rfind('.') + 1))) - 1;
}

bool Sentinel::accept(uint64_t link) {
  if (is_up_) sessions_.emplace(link, Session{});
  return is_up_;
}

void Sentinel::learn(const View &view) {
  if (view.epoch > next_.epoch) next_ = view;
  if (!is_up_ || schedule_.now() < held_until_ || next_.epoch <= view_.epoch) return;
  const HostPort was = server_address(view_.primary);
  take(next_);
  const HostPort is = server_address(view_.primary);
  if (is == was) view_.is_announced = false;  // it has missed a failover and the one back
  if (!view_.is_announced) return;
  publish(kSwitch, std::string(kPrimaryName) + " " + was.host + " " + was.port + " " + is.host +
                       " " + is.port);
}

void Sentinel::lead(const View &view, Nanos late) {
  const HostPort was = server_address(view_.primary);
  const HostPort is = server_address(view.primary);
  next_ = view;
  take(view);
  publish(kPromoted, "slave " + is.text() + " " + is.host + " " + is.port + " @ " + kPrimaryName +
                         " " + was.host + " " + was.port);
  schedule_.in(late, [this, was, is, epoch = view.epoch] {
    if (!is_up_ || view_.epoch != epoch) return;
    publish(kSwitch, std::string(kPrimaryName) + " " + was.host + " " + was.port + " " + is.host +
                         " " + is.port);
  });
}

void Sentinel::take(const View &view) {
  view_ = view;
  view_since_ = schedule_.now();
  trace_.say(schedule_.now(), "sentinel %zu: node %zu is the primary, epoch %d", number_,
             view_.primary, static_cast<int>(view_.epoch));
}

void Sentinel::publish(std::string_view channel, const std::string &message) {
  for (const auto &[link, session] : sessions_) {
    if (!session.channels.contains(channel)) continue;
    Messages messages;
    messages.push_back(push(Value::list({text("message"), text(channel), text(message)})));
    network_.send_down(link, std::move(messages), false);
  }
}

void Sentinel::hold_back(Nanos until) {
  held_until_ = std::max(held_until_, until);
  schedule_.at(held_until_, [this] { learn(next_); });
}

void Sentinel::crash() {
  is_up_ = false;
  for (const auto &[link, session] : std::exchange(sessions_, {})) network_.reset(link);
}

// ---- commands ----------------------------------------------------------------------------------

void Sentinel::received(uint64_t link, CommandList commands) {
  const auto found = sessions_.find(link);
  if (found == sessions_.end()) return;
  Messages answers;
  std::vector<std::string_view> argv;
  for (const Command &command : commands) {
    command.view(argv);
    if (argv[0] == "SUBSCRIBE") {
      for (size_t i = 1; i < argv.size(); i++) {
        found->second.channels.emplace(argv[i]);
        answers.push_back(push(
            Value::list({text("subscribe"), text(argv[i]), Value::of(static_cast<int64_t>(i))})));
      }
      continue;
    }
    answers.push_back(answer(argv));
  }
  network_.send_down(link, std::move(answers), false);
}

Message Sentinel::answer(Argv argv) const {
  if (argv[0] == "HELLO") {
    return reply(
        Value::list({text("server"), text("redis"), text("version"), text("7.0.15"), text("proto"),
                     Value::of(int64_t{3}), text("mode"), text("sentinel")}));
  }
  if (argv[0] == "SENTINEL" && argv.size() == 3) return reply(describe(argv));
  return reply(Value::error("ERR unknown command '" + std::string(argv[0]) + "'"));
}

Value Sentinel::describe(Argv argv) const {
  if (argv[2] != kPrimaryName) return Value::nil();
  const HostPort primary = server_address(view_.primary);
  if (argv[1] == "GET-MASTER-ADDR-BY-NAME") {
    return Value::list({text(primary.host), text(primary.port)});
  }
  if (argv[1] == "MASTER") {
    return Value::list({text("name"), text(kPrimaryName), text("ip"), text(primary.host),
                        text("config-epoch"), text(std::to_string(view_.epoch))});
  }
  std::vector<Value> others;
  for (size_t i = 0; i < static_cast<size_t>(plan_.sentinel_count); i++) {
    if (i == number_) continue;
    const HostPort other = sentinel_address(i);
    others.push_back(Value::list({text("ip"), text(other.host), text("port"), text(other.port)}));
  }
  return Value::list(std::move(others));
}

}  // namespace redlatch::sim
