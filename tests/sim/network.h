// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Network: connections between clients and servers. The messages of one direction arrive in order,
// or not at all, after delays that the seed determines.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "plan.h"
#include "random.h"
#include "schedule.h"
#include "stats.h"
#include "value.h"

namespace redlatch::sim {

// A command in flight. It owns its arguments.
class Command {
 public:
  explicit Command(Argv argv) {
    for (const auto &argument : argv) {
      bytes_.append(argument);
      ends_.push_back(static_cast<uint32_t>(bytes_.size()));
    }
  }
  void view(std::vector<std::string_view> &argv) const {
    argv.clear();
    uint32_t begin = 0;
    for (const uint32_t end : ends_) {
      argv.push_back(std::string_view(bytes_).substr(begin, end - begin));
      begin = end;
    }
  }

 private:
  std::string bytes_;
  std::vector<uint32_t> ends_;
};

// A message of a server.
struct Message {
  enum class Kind : uint8_t { kReply, kPush };
  Kind kind = Kind::kReply;
  Value value;
};

using CommandList = std::vector<Command>;
using Messages = std::vector<Message>;

// The two ends of a connection.
class ClientEnd {
 public:
  virtual ~ClientEnd() = default;
  virtual void received(uint64_t link, Messages messages) = 0;
  virtual void closed(uint64_t link) = 0;
};

class ServerEnd {
 public:
  virtual ~ServerEnd() = default;
  virtual void received(uint64_t link, CommandList commands) = 0;
  virtual void closed(uint64_t link) = 0;
};

class Network {
 public:
  Network(const Plan &plan, Schedule &schedule, Stats &stats);

  // A connection of `client` to `server`. Both ends may use it from now on. `is_for_messages`:
  // pushes on it may be late.
  uint64_t open(ClientEnd &client, ServerEnd &server, bool is_for_messages = false);
  void send_up(uint64_t link, CommandList commands);
  void send_down(uint64_t link, Messages messages, bool is_push);

  // When the server notices the end of a connection.
  enum class Ending : uint8_t { kSoon, kLate };
  // Close the client's end, without closed(). Some of the commands in flight still arrive.
  void close(uint64_t link, Ending ending);
  // Break the connection: close(), and closed() of the client.
  void cut(uint64_t link, Ending ending);
  // Break the connection just after the client has sent something, which is then in flight.
  void cut_when_sending(uint64_t link, Ending ending);
  // Close the server's end: no command arrives any more, and the client gets closed().
  void reset(uint64_t link);
  // Deliver nothing in one direction until `until`.
  void stall(uint64_t link, bool is_up, Nanos until);
  void heal();  // end all stalls and spikes

  // The delay of a message. Spikes occur only while faults are on.
  Nanos delay();
  bool is_open(uint64_t link) const { return links_.contains(link); }

 private:
  struct Direction {
    Nanos last = 0;     // arrival of the last message
    Nanos stalled = 0;  // end of the stall
    size_t in_flight = 0;
    int64_t may_arrive = INT64_MAX;  // messages that still arrive after a close
  };
  struct Link {
    ClientEnd *client;
    ServerEnd *server;
    bool is_for_messages;
    bool is_client_open = true;
    bool is_server_open = true;
    bool is_late = false;    // messages that still arrive are late copies
    bool is_marked = false;  // to be cut when it sends
    Ending marked_ending = Ending::kSoon;
    Direction up, down;
  };
  using LinkPtr = std::shared_ptr<Link>;

  Nanos arrival(Direction &direction);
  void arrive_up(uint64_t id, const LinkPtr &link, const std::shared_ptr<CommandList> &commands);
  void arrive_down(uint64_t id, const LinkPtr &link, const std::shared_ptr<Messages> &messages);

  const Plan &plan_;
  Schedule &schedule_;
  Stats &stats_;
  Random random_;
  std::map<uint64_t, LinkPtr> links_;
  std::map<uint64_t, LinkPtr> resets_;  // closed at the server; closed() of the client is due
  uint64_t last_id_ = 0;
  bool is_calm_ = false;
};

}  // namespace redlatch::sim
