// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Network: connections between clients and the server. Bytes of one direction arrive in order, or
// not at all; when, is drawn from the seed.
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
#include "tally.h"
#include "value.h"

namespace redlatch::sim {

// A command on its way. It owns its arguments.
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

// What a server says.
struct Message {
  enum class Kind : uint8_t { kReply, kPush, kInvalidation };
  Kind kind = Kind::kReply;
  Value value;       // of a reply
  std::string text;  // pushed, or the key
};

using CommandList = std::vector<Command>;
using Messages = std::vector<Message>;

// Who is at the two ends.
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
  Network(const Plan &plan, Schedule &schedule, Tally &tally);

  // A connection of `client` to `server`. Both ends may use it from now on.
  uint64_t open(ClientEnd &client, ServerEnd &server);
  void send_up(uint64_t link, CommandList commands);
  // `is_push`: on a connection for messages alone, if this plan has one.
  void send_down(uint64_t link, Messages messages, bool is_push);

  // How a connection ends for its server.
  enum class Ending : uint8_t { kSoon, kLate };
  // The client's end is closed; it is not told. What was under way to the server arrives in part.
  void close(uint64_t link, Ending ending);
  // The connection breaks, and the client is told.
  void cut(uint64_t link, Ending ending);
  // .. just after it has sent something, so that this is under way.
  void cut_when_sending(uint64_t link, Ending ending);
  // The server's end goes: nothing arrives there any more, and the client is told.
  void reset(uint64_t link);
  // One direction stands still until then.
  void stall(uint64_t link, bool is_up, Nanos until);
  void heal();  // no connection stands still any more, and delays are short

  // How long a message takes. Above the usual only while faults are on.
  Nanos delay();
  bool is_open(uint64_t link) const { return links_.contains(link); }

 private:
  struct Direction {
    Nanos last = 0;     // when the last message is to arrive
    Nanos stalled = 0;  // until then
    size_t in_flight = 0;
    int64_t may_arrive = INT64_MAX;  // so many more messages, after a cut
  };
  struct Link {
    ClientEnd *client;
    ServerEnd *server;
    bool is_client_open = true;
    bool is_server_open = true;
    bool is_late = false;    // what still arrives is late
    bool is_marked = false;  // to be cut when it sends
    Ending marked_ending = Ending::kSoon;
    Direction up, down, push;
  };
  using LinkPtr = std::shared_ptr<Link>;

  Nanos arrival(Direction &direction);
  void arrive_up(uint64_t id, const LinkPtr &link, const std::shared_ptr<CommandList> &commands);
  void arrive_down(uint64_t id, const LinkPtr &link, bool is_push,
                   const std::shared_ptr<Messages> &messages);

  const Plan &plan_;
  Schedule &schedule_;
  Tally &tally_;
  Random random_;
  std::map<uint64_t, LinkPtr> links_;
  std::map<uint64_t, LinkPtr> resets_;  // gone at the server, and the client is still to be told
  uint64_t last_id_ = 0;
  bool is_calm_ = false;
};

}  // namespace redlatch::sim
