// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "sentinel/conversation.h"

#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "base/text.h"
#include "protocol/answer.h"
#include "protocol/command.h"

namespace redlatch::sentinel {

namespace {

constexpr size_t kMaxIdBytes = 64;
constexpr std::string_view kUnknownCommand = "ERR unknown command";

// The value of `field` in a list of names and values.
std::string_view value_of(const Reply &reply, std::string_view field) {
  for (size_t i = 0; i + 1 < reply.count(); i += 2) {
    if (reply.at(i).text() == field) return reply.at(i + 1).text();
  }
  return {};
}

}  // namespace

void say_hello(const Settings &settings, const Send &send) {
  protocol::Command hello;
  hello.add("HELLO").add("3");
  if (!settings.password.empty()) {
    std::string_view user = "default";
    if (!settings.user.empty()) user = settings.user;
    hello.add("AUTH").add(user).add(settings.password);
  }
  if (!settings.client_name.empty()) hello.add("SETNAME").add(settings.client_name);
  send(hello.argv());
}

Outcome check_hello(const Reply &reply, const Settings &settings) {
  if (reply.is_error()) return refused(reply, settings);
  const std::string_view mode = value_of(reply, "mode");
  if (mode == "sentinel") return {};
  const HostPort address{settings.host, settings.port};
  return failure(Status::kInvalid, address.text() + " is no sentinel but a server" +
                                       (mode.empty() ? "" : " (mode " + clean(mode) + ")") +
                                       ": its URL is redis://" + address.text());
}

void ask(std::string_view question, std::string_view primary_name, const Send &send) {
  protocol::Command command;
  command.add("SENTINEL").add(question).add(primary_name);
  send(command.argv());
}

void ask_id(const Send &send) {
  protocol::Command command;
  command.add("SENTINEL").add("MYID");
  send(command.argv());
}

Outcome read_address(const Reply &reply, const Settings &settings, std::string_view primary_name,
                     HostPort &address) {
  if (reply.is_error()) return refused(reply, settings);
  const std::string who = HostPort{settings.host, settings.port}.text();
  if (reply.kind == Reply::Kind::kNil) {
    return failure(Status::kInvalid,
                   who + " does not know " + quoted(primary_name, kMaxPrimaryNameBytes));
  }
  if (read_host_port(reply.at(0).text(), reply.at(1).text(), address)) return {};
  return failure(Status::kServer,
                 who + " named no address of " + quoted(primary_name, kMaxPrimaryNameBytes));
}

std::vector<HostPort> read_others(const Reply &reply) {
  std::vector<HostPort> others;
  for (NamedSentinel &one : read_members(reply)) others.push_back(std::move(one.address));
  return others;
}

std::vector<NamedSentinel> read_members(const Reply &reply) {
  std::vector<NamedSentinel> members;
  for (size_t i = 0; i < reply.count() && members.size() < kMaxSentinels; i++) {
    NamedSentinel one;
    const Reply &fields = reply.at(i);
    if (!read_host_port(value_of(fields, "ip"), value_of(fields, "port"), one.address)) continue;
    one.id = value_of(fields, "runid").substr(0, kMaxIdBytes);
    const bool is_new = std::none_of(members.begin(), members.end(), [&one](const auto &other) {
      return other.address == one.address;
    });
    if (is_new) members.push_back(std::move(one));
  }
  return members;
}

GroupSize read_group_size(const Reply &reply) {
  constexpr int64_t kMost = 1'000'000;
  GroupSize size;
  const auto read = [&reply](std::string_view field, int64_t &out) {
    int64_t number = 0;
    const bool is_number = parse_number(value_of(reply, field), number);
    if (is_number && number >= 0 && number <= kMost) out = number;
  };
  read("quorum", size.quorum);
  read("num-other-sentinels", size.other_count);
  return size;
}

std::string read_id(const Reply &reply) {
  if (reply.is_error()) return {};
  return std::string(reply.text().substr(0, kMaxIdBytes));
}

int64_t read_epoch(const Reply &reply) {
  int64_t epoch = -1;
  if (!parse_number(value_of(reply, "config-epoch"), epoch) || epoch < 0) return -1;
  return epoch;
}

bool read_host_port(std::string_view host, std::string_view port, HostPort &address) {
  constexpr int kMaxPort = 65'535;
  int number = 0;
  const bool is_host = !host.empty() && host.size() <= kMaxHostBytes &&
                       std::all_of(host.begin(), host.end(), [](char c) {
                         return c > ' ' && c < 0x7f && c != '/' && c != '@' && c != ',';
                       });
  if (!is_host || !parse_number(port, number) || number < 1 || number > kMaxPort) return false;
  address = HostPort{std::string(host), std::to_string(number)};
  return true;
}

Outcome refused(const Reply &reply, const Settings &settings) {
  auto refusal = protocol::refusal_of(reply, settings.password);
  // The server would quote its arguments, and cut a long password, of which a part would be left.
  if (refusal.message.starts_with(kUnknownCommand)) refusal.message = kUnknownCommand;
  if (refusal.message.starts_with("NOAUTH")) {
    refusal.message = "it asks for a password (NOAUTH): set sentinel_password";
  }
  return failure(refusal.status(),
                 HostPort{settings.host, settings.port}.text() + " refused: " + refusal.message);
}

}  // namespace redlatch::sentinel
