// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Client: the product's LockService in a simulated process. It does what core/runtime does in a
// real one: it opens connections to each node, runs timers, and completes the requests of callers.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cluster/cluster_client.h"
#include "context.h"
#include "driver/dialogue.h"
#include "driver/drain.h"
#include "driver/log.h"
#include "driver/node_attempt.h"
#include "driver/node_connection.h"
#include "guide.h"
#include "lock/lock_client.h"
#include "memory.h"
#include "network.h"
#include "redials.h"
#include "retained.h"
#include "side.h"
#include "wallet.h"

namespace redlatch::sim {

class Client : private lock::Output, private driver::Log {
 public:
  using RequestPtr = std::shared_ptr<lock::Request>;

  // `slot`: its index among the processes; `life`: how many processes had this slot before.
  Client(Context &context, int slot, uint64_t life);
  ~Client() override;

  // Calls of users.
  void start(const RequestPtr &request, std::function<void()> done);
  void cancel(lock::Request &request);
  void release_async(lock::Lease &lease);
  bool is_held(const lock::Lease &lease) const;
  // The process shuts the client down. `over`: called when that has ended.
  void shut_down(std::function<void()> over = {});
  bool is_ending() const { return shut_at_ != kNever; }
  bool is_closed() const { return is_closed_; }

  // Faults.
  void pause(Nanos until);
  bool is_paused() const { return context_.schedule.now() < paused_until_; }
  Nanos paused_until() const { return paused_until_; }
  void forget_connections(Network::Ending ending);  // the process has ended
  // Block messages to `node` (is_up), from it (is_down), and new connections, until `until`.
  void cut_off(size_t node, bool is_up, bool is_down, Nanos until);
  // The connection for messages dies silently.
  void silence_messages(size_t node);
  // As cut_off() for a server of a group, and for a sentinel, in both directions.
  void part_from_server(size_t server, Nanos until);
  void part_from_sentinel(size_t sentinel, Nanos until);
  void heal();
  Wallet &wallet() { return wallet_; }
  bool is_connected(size_t node) const { return wires_[node]->is_up(); }
  // False for a node that only the process before this one knew.
  bool is_opening(size_t node) const {
    if (node >= wires_.size()) return false;
    return wires_[node]->dialogue() != nullptr || side_.is_opening();
  }
  bool is_all_up() const {
    return std::all_of(wires_.begin(), wires_.end(),
                       [](const auto &wire) { return wire->is_up(); });
  }
  bool is_busy() const { return !calls_.empty(); }
  bool is_waiting() const { return service_->expects_push(); }
  // Its connections to `node`; 0: none.
  uint64_t link(size_t node) const {
    const Wire &wire = *wires_[node];
    return wire.sentinel_link != 0 ? wire.sentinel_link : wire.link;
  }
  uint64_t disturb_watch(size_t sentinel) { return guide_->disturb(sentinel); }
  uint64_t messages_link(size_t node) const { return wires_[node]->messages_link; }
  uint64_t side_link() const { return side_.link(); }

  // Of a group: the server that it is connected to as `node`, and since when.
  size_t server_of(size_t node) const { return wires_[node]->at; }
  Nanos settled_since() const { return wires_.front()->up_since; }

  // Check that no opening and no pause lasts too long, and that no server is kept that is no
  // primary any more.
  void check_openings() const;

  int slot() const { return slot_; }
  // True if its user may not subscribe, so that it has to poll.
  bool is_polling() const { return context_.plan.has(Fault::kPollOnly) && slot_ % 4 == 3; }
  const std::string &channel(size_t node = 0) const { return service_->channel(node); }
  size_t wire_count() const { return wires_.size(); }
  // Whether messages to the channel of this cid reach it.
  bool hears(std::string_view cid) const;
  // Whether it is connected to the server of the lock, and has compared its clock with that of the
  // server before. The lock is there since `moved_at`: of a slot that went away and came back
  // meanwhile the client knows nothing.
  bool knows_clock(const lock::Lease &lease, size_t server, Nanos moved_at) const;
  // True if the lease is not renewed and its slot has been at two nodes since the grant. The slot
  // came to the node before the last at `moved_before_at`.
  bool may_miss_a_stay(const lock::Lease &lease, Nanos moved_before_at) const;
  // True if its service has nothing left to do.
  bool is_through() const;

 private:
  // The connections to one node.
  struct Wire final : ClientEnd {
    Wire(Client &client_, size_t node_, const Settings &settings_)
        : client(client_),
          node(node_),
          settings(settings_),
          connection(settings_, node_, client_) {}
    void received(uint64_t id, Messages messages) override;
    void closed(uint64_t id) override;

    Client &client;
    const size_t node;
    const Settings &settings;
    driver::NodeConnection connection;
    size_t at = node;  // the number of the server; that of a primary changes
    driver::Dialogue::Wire end_of(uint64_t id) const {
      if (id == sentinel_link) return driver::Dialogue::kSentinel;
      return id == messages_link ? driver::Dialogue::kMessages : driver::Dialogue::kCommands;
    }
    uint64_t &link_of(driver::Dialogue::Wire end) {
      if (end == driver::Dialogue::kSentinel) return sentinel_link;
      return end == driver::Dialogue::kMessages ? messages_link : link;
    }
    driver::Dialogue *dialogue() { return opening ? opening->dialogue() : nullptr; }
    // Between the end of the attempt and that of the connection.
    bool is_up() const { return connection.is_made(); }
    bool owns(uint64_t id) const {
      return id != 0 && (id == link || id == messages_link || id == sentinel_link);
    }

    uint64_t link = 0;
    uint64_t messages_link = 0;   // with RESP2
    uint64_t sentinel_link = 0;   // of the attempt to connect
    uint64_t silent_link = 0;     // the last one for messages that has died silently
    Nanos silent_since = kNever;  // it is used, and a lock is waited for
    std::unique_ptr<driver::NodeAttempt> opening;  // the attempt to connect
    std::unique_ptr<LoginTry> login_try;           // .. and its passwords
    std::unique_ptr<driver::NodeAttempt> ended;    // until the service hears of it
    uint64_t attempt = 0;                          // counts dials
    Nanos opened_at = 0;                           // the last one
    Nanos limit = 0;       // that of the attempt for which an event is scheduled
    Messages early;        // messages that arrived before the end of the attempt
    bool is_away = false;  // the last attempt to connect has failed
    size_t named_at = static_cast<size_t>(-1);  // the last primary in the log
    bool is_end_due = false;  // of a connection, or of an attempt: the service is about to hear it
    Nanos refused_at = kNever;         // the last AUTH on this connection
    std::vector<uint64_t> closed_due;  // connections that ended while the process was paused
    CommandList out;
    std::string run_id;  // the last one of the node
    Nanos blocked_until = 0;
    Redials redials{Redials::kOfServer};
    bool may_skip_pause = false;  // its channel was taken
    Nanos must_pause_until = 0;   // an answer does not end the long pauses before
    Nanos down_since = kNever;    // since the first attempt for the calls under way

    // Of a group.
    size_t sentinel = 0;
    Nanos up_since = 0;
    Nanos polls_since = kNever;  // its channel has a further receiver
    Nanos hurried_at = kNever;   // news of another primary came, and no attempt has begun since
    Nanos left_since = kNever;   // it was heard then that this server is no primary any more

    // Of a cluster.
    std::string channel;             // that of the attempt
    bool is_asking = false;          // the last command was ASKING
    std::deque<int> slots;           // of the commands without an answer; kNoSlot: of no lock
    Nanos misplaced_since = kNever;  // its channel has the slot of another node
  };
  struct Arrival {
    size_t node;
    uint64_t link;
    Messages messages;
  };

  // lock::Output
  void send(size_t node, std::span<const std::string_view> argv) override;
  void finished(lock::Request &request) override;
  void lease_ended(lock::Lease &lease) override;
  void lease_moved(lock::Lease &lease) override;
  void drop_link(size_t node) override { wires_[node]->connection.drop(); }
  void send_on_side(size_t node, std::span<const std::string_view> argv) override;
  void drop_side(size_t) override { side_.drop(); }
  void send_on_messages(size_t node, std::span<const std::string_view> argv) override;
  void open_node(size_t node, const Settings &settings) override;
  // driver::Log
  void add(driver::LogLevel level, std::string_view text) noexcept override;

  Nanos now() const { return clock_.read(context_.schedule.now()); }
  Nanos when(Nanos reading) const { return clock_.when(reading); }
  Server &server(const Wire &wire) const { return *context_.servers[wire.at]; }
  void make_service();
  std::array<uint8_t, 16> random_id();
  template <class Call>
  void call(const Call &call);
  template <class Action>
  void later(Nanos delay, Action action);
  void settle();
  Nanos scheduling();
  void tell(const char *what, const lock::Request &request);
  void believe(const lock::Request &request);
  void believe_in_others(std::span<const lock::NamedMode> names, Beliefs::Holder holder);
  // `limit`: the largest that its caller may have had.
  void count_permits(const lock::Lease &lease, int limit, Beliefs::Holder &holder) const;
  void disconnect(Wire &wire);
  void hang_up(Wire &wire, Network::Ending ending);
  void connect(Wire &wire);
  void prepare(Wire &wire);
  void go_on(Wire &wire);
  void wake_tries();
  void give_up(Wire &wire);
  // client_ending.cc
  static constexpr Nanos kDrainSlack = 10 * kMs;  // until threads run
  void tend_drain();
  void close();
  void check_drain() const;
  void check_given_back() const;
  // client_group.cc, called by the guide
  friend class Guide;
  friend class Side;
  // client_logins.cc
  friend class LoginTry;
  friend class Wallet;
  void authenticate();
  void authenticate(Wire &wire);
  bool take_auth(Wire &wire, const Value &value);
  void note_auth(Wire &wire, driver::NodeConnection::Refused refused, const Reply &reply);
  void check_drop(const Wire &wire) const;
  void check_promise(const lock::Lease &lease);
  void name_sentinels(Settings &settings) const;
  void on_moved();
  void note_told(size_t old_primary);
  bool is_parted(size_t server) const;
  void check_left(const Wire &wire) const;
  void check_heard(const Wire &wire) const;
  void check_hurry(const Wire &wire) const;
  void check_news(int64_t epoch) const;
  void check_polling(const Wire &wire) const;
  void check_silence(Wire &wire) const;
  void check_retained();
  void check_redials(const Wire &wire) const;
  Nanos opening_limit() const;
  void note_start(const lock::Request &request);
  void note_dial(Wire &wire);
  void note_pause(Wire &wire);
  void note_reply(Wire &wire, const Value &value);
  // client_cluster.cc
  static constexpr int kNoSlot = -1;
  bool is_cluster() const { return settings_.front().is_cluster(); }
  // It has no connection of its own.
  bool reads_slots(const Wire &wire) const { return is_cluster() && wire.node == 0; }
  // The service below leases of several names.
  const lock::LockService &inner() const;
  const cluster::ClusterClient &cluster() const;
  void name_nodes(Settings &settings) const;
  void become_cluster(Wire &wire);
  void on_slots(Wire &wire);
  void note_command(Wire &wire, Argv argv);
  void note_answer(Wire &wire, const Value &value);
  void note_channel(const Wire &wire, const ServerFacts &facts);
  void note_owner(uint16_t slot, const HostPort &server);
  size_t named_server(uint16_t slot) const;
  bool is_named(size_t server) const;
  void check_cluster();
  void note_loss(const lock::Lease &lease);
  void check_tickets();
  void check_channels();
  void dial(Wire &wire);
  void dialled(Wire &wire);
  bool is_reachable(const Wire &wire, const Settings &target) const;
  bool open(Wire &wire, const Settings &target);
  void answer(Wire &wire, uint64_t link, const Messages &messages);
  template <class Event>
  void step(Wire &wire, const Event &event);
  void watch_limit(Wire &wire);
  void finish(Wire &wire);
  void conclude(Wire &wire);
  void on_connected(Wire &wire);
  void check_opening(const Wire &wire, const ServerFacts &facts);
  void arm();
  void on_time(uint64_t number);
  void take(Wire &wire, uint64_t link, const Messages &messages);
  void take_message(Wire &wire, const Message &message);
  void note_push(std::string_view channel, bool is_sharded, const Value &message);
  void end_attempt(Wire &wire);
  void note_end(Wire &wire);
  void resume();

  Context &context_;
  const int slot_;
  const Clock clock_;
  Random random_;
  std::vector<Settings> settings_;  // one for each node
  QuorumSettings quorum_settings_;
  std::vector<std::unique_ptr<Wire>> wires_;
  std::unique_ptr<lock::LockService> service_;
  const std::shared_ptr<bool> is_alive_;  // events outlive the client

  std::optional<Guide> guide_;  // with sentinels
  Wallet wallet_;
  Side side_;  // where replicas confirm
  // Of a cluster: the servers of slots, as the client was last told.
  std::vector<protocol::SlotRange> ranges_;
  std::map<uint16_t, size_t> redirects_, recent_redirects_;  // the latter since the reading began
  struct Bounces {
    Nanos since = 0;
    int count = 0;
    size_t server = SIZE_MAX;
  };
  std::map<uint16_t, Bounces> bounces_;
  std::map<uint16_t, Nanos> heard_at_;  // the last answer to a script about a slot
  std::map<const lock::TokenRecord *, std::pair<std::string, std::string>> tickets_;
  std::map<size_t, Nanos> parted_;  // servers that are not reached until then
  Nanos redirected_at_ = -kSecond;  // by its clock: slots may have moved
  Nanos last_reply_at_ = 0;         // last reply that no pause of this process has delayed
  bool is_resuming_ = false;
  // Of the shutdown.
  Nanos shut_at_ = kNever;
  std::optional<driver::Drain> drain_;  // until enough has drained
  Nanos drain_limit_ = kNever;          // for which an event is scheduled
  bool is_closed_ = false;              // the service gets no event of time or connections any more
  std::function<void()> over_;
  Nanos timer_at_ = kNever;  // of the pending timer event
  uint64_t timer_number_ = 0;
  Nanos paused_until_ = 0;
  std::vector<Arrival> inbox_;  // while paused
  bool is_time_due_ = false;    // while paused
  std::map<lock::Request *, std::pair<RequestPtr, std::function<void()>>> calls_;
  std::map<const lock::Request *, Nanos> begun_;  // of several names, and of flights
  std::vector<std::function<void()>> done_;
  std::array<uint64_t, 4> line_counts_{};  // of its log, by level
  std::set<std::string> given_up_;         // tokens whose leases this call has ended
  Retained retained_;
};

// Every call of the service goes through here.
template <class Call>
void Client::call(const Call &call) {
  context_.beliefs.look();
  {
    const CoreMemory::Scope scope;
    call(*service_, now());
  }
  settle();
}

// Run an action of this process later: after a pause, and not if the process has ended.
template <class Action>
void Client::later(Nanos delay, Action action) {
  context_.schedule.in(delay, [this, action, alive = is_alive_] {
    if (!*alive) return;
    if (is_paused()) return later(paused_until_ - context_.schedule.now(), action);
    action();
  });
}

}  // namespace redlatch::sim
