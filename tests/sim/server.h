// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Server: a store with connections: greetings, subscriptions, key tracking, and the faults of a
// server.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
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

// The state of each key that a command has changed; nullopt: the key is gone.
using Effects = std::vector<std::pair<std::string, std::optional<Store::Entry>>>;

// Carries what servers write to their replicas. Servers are numbered from 0.
class Journal {
 public:
  virtual ~Journal() = default;
  virtual void wrote(size_t server, Effects effects) = 0;
  // How many replicas have confirmed the first `offset` writes of the server.
  virtual int64_t confirmed_count(size_t server, uint64_t offset) const = 0;
};

// Of a cluster: the slots that a node knows of. Servers are numbered from 0.
class Shards {
 public:
  virtual ~Shards() = default;
  // The refusal of a command with these keys; nullopt: the server carries it out. `is_asking`: it
  // comes behind ASKING.
  virtual std::optional<Value> refusal(size_t server, Argv keys, bool is_asking) = 0;
  // .. of a subscription, or of a message.
  virtual std::optional<Value> refusal_of_channel(size_t server, std::string_view channel) = 0;
  // The answer to CLUSTER INFO or CLUSTER SLOTS.
  virtual Value describe(size_t server, std::string_view what) = 0;
  // `server` has published. Other nodes deliver the message, and are not counted: all if the
  // channel is plain, those of the same shard if it is sharded.
  virtual void published(size_t server, std::string_view channel, std::string_view message,
                         bool is_sharded) = 0;
};

class Server : public ServerEnd, private Store::Listener {
 public:
  // `number`: 1, 2, .. for one of several independent servers; 0 for the only one.
  Server(const Plan &plan, Schedule &schedule, Network &network, Stats &stats, Trace &trace,
         Verdict &verdict, const Mutant *mutant, int number = 0);

  // The user of clients that may not subscribe, and the first password of every user.
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

  // Of a primary or a replica; see group.h. What it writes goes to `journal`.
  void join(Journal &journal) { journal_ = &journal; }
  void promote() { store_.set_replica(false); }
  // It follows a primary, and ends the connections of all clients.
  void demote();
  void apply(const Effects &effects);
  void copy(const Server &primary) { store_.copy_keys(primary.store_); }
  void note_confirmed();  // replicas have confirmed more
  uint64_t offset() const { return offset_; }
  // The connection was last told that this server is a primary.
  bool has_read_primary(uint64_t link) const;

  // Of a cluster.
  void join(Journal &journal, Shards &shards) {
    journal_ = &journal;
    shards_ = &shards;
  }
  // The keys that a command names; empty for one that has nothing to do with a slot.
  static Argv keys_of(Argv argv);
  bool has_key(std::string_view key) const;
  bool is_channel_here(std::string_view channel) const;
  // Gives a key away, or takes it. Keys go with the time that is left, or with their absolute end.
  std::optional<Store::Entry> extract(const std::string &key);
  void restore(const std::string &key, const Store::Entry &entry);
  // The slot of these channels is not served any more.
  void unsubscribe(const std::function<bool(std::string_view channel)> &is_gone);
  // It follows another server, and keeps the connections of its clients.
  void step_down();

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
  void set_may_publish(bool is_on) { store_.set_may_publish(is_on && !plan_.lacks_publish); }
  void set_replica(bool is_on) { store_.set_replica(is_on); }
  // Those of every user. Connections that are there stay.
  void set_passwords(std::vector<std::string> passwords) { passwords_ = std::move(passwords); }
  void step_clock(Nanos by) { clock_.step(by); }
  // Give a message to the subscribers that are connected to this server, and count them.
  int64_t deliver(std::string_view channel, std::string_view message, bool is_sharded);
  // Publish a message as another user of the server.
  void forge(std::string_view channel, std::string_view message) {
    (void)published(channel, message, plan_.is_sharded);
  }

  bool is_up() const { return is_up_; }
  bool is_paused() const { return schedule_.now() < paused_until_; }
  bool has_restarted() const { return life_ > 0; }
  int64_t now_us() const { return clock_.read(schedule_.now()) / 1000; }
  const Clock &clock() const { return clock_; }
  // As in INFO: the run id changes with each start; the uptime is measured by the wall clock.
  std::string run_id() const;
  int64_t uptime_s() const { return (now_us() - started_us_) / 1'000'000; }
  Store &store() { return store_; }
  const Store &store() const { return store_; }
  int64_t receiver_count(std::string_view channel) const;
  // Whether a lock is held, or waited for, by a token of the client with this cid.
  bool has_token_of(std::string_view cid) const;
  // Delete expired keys, as the server does in the background.
  void expire();

  void received(uint64_t link, CommandList commands) override;
  void closed(uint64_t link) override;

 private:
  struct Session {
    int protocol = 2;
    bool is_peer = false;
    bool is_authenticated = false;
    bool may_subscribe = true;
    bool is_uncounted = false;  // PUBLISH does not count this receiver
    int database = 0;
    uint64_t flushes_before = 0;  // the connection
    std::string channel;
    bool is_sharded = false;
    std::string notices;  // the plain channel beside a sharded one
    bool was_subscribed = false;
    bool is_probed = false;
    bool has_read_replica = false;
    bool has_read_primary = false;
    bool is_tracking = false;
    bool tracks_next = false;
    bool is_asking = false;  // ASKING stands before the next command
    std::set<std::string, std::less<>> tracked;
    uint64_t written = 0;  // the offset of its last write
    uint64_t wait = 0;     // the number of its WAIT that is not answered; 0: none
    int64_t wait_for = 0;  // replicas
    CommandList behind;    // its WAIT
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
  bool is_out_of_reach(Argv argv) override;

  void run(uint64_t link, CommandList commands);
  Value execute(Session &session, Argv argv);
  void tell(Argv argv, const Value &reply);
  // server_cluster.cc
  std::optional<Value> answer_of_cluster(Session &session, Argv argv);
  // server_replication.cc
  void journalise(Session &session);
  void wait(uint64_t link, Session &session, Argv argv);
  void end_wait(uint64_t link, uint64_t wait);
  // server_greetings.cc
  // nullopt: `argv` is no command of a handshake.
  std::optional<Value> greet(Session &session, Argv argv);
  std::string_view version() const;
  Value hello(Session &session, Argv argv);
  Value auth(Session &session, std::string_view user, std::string_view password) const;
  Value info(Session &session, std::string_view section) const;
  Value load_script(std::string_view text);
  Value subscribe(Session &session, Argv argv) const;
  Value client_command(Session &session, Argv argv) const;
  void check_session(const Session &session, Argv argv, const Value &reply);
  std::string text_of(const protocol::ScriptText &script) const;
  void push(uint64_t link, std::initializer_list<std::string_view> texts);
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
  std::vector<std::string> passwords_{std::string(kPassword)};

  uint64_t current_ = 0;  // the link whose command runs
  Messages answers_;      // to be sent on that link
  Journal *journal_ = nullptr;
  Shards *shards_ = nullptr;
  bool is_asking_ = false;   // the command that runs
  bool is_carried_ = false;  // a key goes to another server, or comes from one
  uint64_t offset_ = 0;      // counts writes
  uint64_t wait_count_ = 0;
  std::set<std::string> dirty_;  // keys that the command has changed
  std::vector<std::string_view> argv_;
};

}  // namespace redlatch::sim
