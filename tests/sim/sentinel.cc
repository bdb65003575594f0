// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "sentinel.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace redlatch::sim {

namespace {

constexpr std::string_view kSwitch = "+switch-master";

Value text(std::string_view words) { return Value::of(std::string(words)); }

Message reply(Value value) { return {Message::Kind::kReply, std::move(value), {}}; }

Message push(Value value) { return {Message::Kind::kPush, std::move(value), {}}; }

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
  view_ = next_;
  const HostPort is = server_address(view_.primary);
  if (is == was) return;  // it has missed a failover and the one back
  trace_.say(schedule_.now(), "sentinel %zu: node %zu is the primary, epoch %d", number_,
             view_.primary, static_cast<int>(view_.epoch));
  const std::string message =
      std::string(kPrimaryName) + " " + was.host + " " + was.port + " " + is.host + " " + is.port;
  for (const auto &[link, session] : sessions_) {
    if (!session.is_subscribed) continue;
    Messages messages;
    messages.push_back(push(Value::list({text("message"), text(kSwitch), text(message)})));
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
    answers.push_back(answer(found->second, argv));
  }
  network_.send_down(link, std::move(answers), false);
}

Message Sentinel::answer(Session &session, Argv argv) {
  if (argv[0] == "HELLO") {
    return reply(
        Value::list({text("server"), text("redis"), text("version"), text("7.0.15"), text("proto"),
                     Value::of(int64_t{3}), text("mode"), text("sentinel")}));
  }
  if (argv[0] == "SENTINEL" && argv.size() == 3) return reply(describe(argv));
  if (argv[0] == "SUBSCRIBE") {
    session.is_subscribed = true;
    return push(Value::list({text("subscribe"), text(argv[1]), Value::of(int64_t{1})}));
  }
  if (argv[0] == "PING") return reply(Value::status("PONG"));
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
