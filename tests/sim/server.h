// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Server: a store with connections: greetings, subscriptions, key tracking, and the faults of a
// server.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "mutants.h"
#include "network.h"
#include "plan.h"
#include "protocol/scripts.h"
#include "schedule.h"
#include "stats.h"
#include "store.h"
#include "trace.h"
#include "verdict.h"

namespace redlatch::sim {

// Observes every command that the server executes, and its effects.
class Witness {
 public:
  virtual ~Witness() = default;
  virtual void before(Argv, int64_t /* now_us */) {}
  virtual void after(Argv argv, const Value &reply, int64_t now_us) = 0;
  // All keys were lost, and with them every promise except that of fences.
  virtual void forgotten() {}
  // The events of Store::Listener.
  virtual void changed(std::string_view /* key */) {}
  virtual void queued(std::string_view /* key */, std::string_view /* member */, double) {}
  virtual void dequeued(std::string_view /* key */, std::string_view /* member */, double) {}
};

class Server : public ServerEnd, private Store::Listener {
 public:
  // `number`: 1, 2, .. for one of several independent servers; 0 for the only one.
  Server(const Plan &plan, Schedule &schedule, Network &network, Stats &stats, Trace &trace,
         Verdict &verdict, const Mutant *mutant, int number = 0);

  // The user of clients that may not subscribe, and the password of every user.
  static constexpr std::string_view kPoller = "poller";
  static constexpr std::string_view kPassword = "sesame";
  // Peers send no greeting.
  static constexpr int kPeerProtocol = 3;

  void add_witness(Witness &witness) { witnesses_.push_back(&witness); }

  // A connection. Its protocol is that of RESP until HELLO changes it. @return false if the server
  // is down.
  bool accept(uint64_t link, int protocol = 2);
  // A client believes that its messages arrive: it has subscribed on `messages`, and on `commands`
  // a probe has counted that. True of a connection that the server has ended.
  bool is_probed(uint64_t commands, uint64_t messages) const;
  // What the connection has read as the role of this server.
  bool has_read_replica(uint64_t link) const;

  // Faults.
  void pause(Nanos until);
  void crash();
  void restart(bool keeps_data);
  void forget();  // lose all keys without a restart
  void evict(const std::string &key) { store_.evict(key); }
  void flush_scripts() {
    store_.flush_scripts();
    flush_count_++;
  }
  void set_out_of_memory(bool is_on) { store_.set_out_of_memory(is_on); }
  void set_may_publish(bool is_on) { store_.set_may_publish(is_on); }
  void set_replica(bool is_on) { store_.set_replica(is_on); }
  void step_clock(Nanos by) { clock_.step(by); }
  // Publish a message as another user of the server.
  void forge(std::string_view channel, std::string_view message) {
    (void)published(channel, message, plan_.is_sharded);
  }

  bool is_up() const { return is_up_; }
  bool has_restarted() const { return life_ > 0; }
  int64_t now_us() const { return clock_.read(schedule_.now()) / 1000; }
  const Clock &clock() const { return clock_; }
  // As in INFO: the run id changes with each start; the uptime is measured by the wall clock.
  std::string run_id() const;
  int64_t uptime_s() const { return (now_us() - started_us_) / 1'000'000; }
  Store &store() { return store_; }
  int64_t receiver_count(std::string_view channel) const;
  // Delete expired keys, as the server does in the background.
  void expire() { store_.expire(now_us()); }

  void received(uint64_t link, CommandList commands) override;
  void closed(uint64_t link) override;

 private:
  struct Session {
    int protocol = 2;
    bool is_peer = false;
    bool is_authenticated = false;
    bool may_subscribe = true;
    int database = 0;
    uint64_t flushes_before = 0;  // the connection
    std::string channel;
    bool is_sharded = false;
    bool is_probed = false;
    bool has_read_replica = false;
    bool is_tracking = false;
    bool tracks_next = false;
    std::set<std::string, std::less<>> tracked;
  };
  struct Waiting {
    uint64_t link;
    CommandList commands;
  };

  int64_t published(std::string_view channel, std::string_view message, bool is_sharded) override;
  int64_t subscribers(std::string_view channel) override;
  void changed(std::string_view key) override;
  void queued(std::string_view key, std::string_view member, double score) override;
  void dequeued(std::string_view key, std::string_view member, double score) override;

  void run(uint64_t link, CommandList commands);
  Value execute(Session &session, Argv argv);
  void tell(Argv argv, const Value &reply);
  // server_greetings.cc
  // nullopt: `argv` is no command of a handshake.
  std::optional<Value> greet(Session &session, Argv argv);
  Value hello(Session &session, Argv argv);
  Value auth(Session &session, std::string_view user, std::string_view password) const;
  Value info(Session &session, std::string_view section) const;
  Value load_script(std::string_view text);
  Value subscribe(Session &session, Argv argv) const;
  Value client_command(Session &session, Argv argv) const;
  void check_session(const Session &session, Argv argv, const Value &reply);
  std::string text_of(const protocol::ScriptText &script) const;
  void push(uint64_t link, Message message);
  void resume();

  const Plan &plan_;
  Schedule &schedule_;
  Network &network_;
  Stats &stats_;
  Trace &trace_;
  Verdict &verdict_;
  const Mutant *const mutant_;
  const int number_;
  Clock clock_;
  int64_t started_us_;  // by its wall clock
  int life_ = 0;        // number of restarts
  uint64_t flush_count_ = 0;
  std::vector<Witness *> witnesses_;
  Store store_;
  std::map<uint64_t, Session> sessions_;
  std::vector<Waiting> waiting_;  // commands that arrived during a pause
  Nanos paused_until_ = 0;
  bool is_up_ = true;

  uint64_t current_ = 0;  // the link whose command runs
  Messages answers_;      // to be sent on that link
  std::vector<std::string_view> argv_;
};

}  // namespace redlatch::sim
