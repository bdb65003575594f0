// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Runtime: the library's own thread, and the attempts to connect.
#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <new>

#include "base/random.h"
#include "cluster/cluster_client.h"
#include "runtime/runtime.h"
#include "runtime/threads.h"

namespace redlatch::runtime {

namespace {

// When a fresh connection is asked for the health of its server: after the first commands, and not
// at the same time by all clients that a failover has disconnected.
Nanos health_delay(const std::string &channel) {
  constexpr size_t kSpreadMs = 400;
  return static_cast<Nanos>(100 + std::hash<std::string>()(channel) % kSpreadMs) * kMs;
}

// A time before `due`, for an answer that a late reader leaves unread: at `due` itself the lease
// that it renews has ended.
Nanos before_too_late(Nanos due, Nanos now) {
  constexpr Nanos kShortest = 5 * kMs;
  return std::min(due, now + std::max((due - now) / 2, kShortest));
}

}  // namespace

void Runtime::start_background() {
  const int error = start_thread(background_thread_, background_main, this);
  if (error != 0) throw NoThread(error);
  has_background_ = true;
}

void *Runtime::background_main(void *runtime) {
  pthread_setname_np(pthread_self(), "redlatch");
  static_cast<Runtime *>(runtime)->run_background();
  return nullptr;
}

void Runtime::run_background() {
  Lock lock(mutex_);
  while (!is_stopping_) {
    try {
      run_background_once(lock);
    } catch (...) {
      if (!lock.owns_lock()) lock.lock();
      drop_links_after_exception();
    }
  }
  for (size_t i = 0; i < links_.size(); i++) {
    Link &link = links_[i];
    if (link.sentinel) {
      for (SentinelLink::Side &one : link.sentinel->sides) {
        (void)end_side_attempt(lock, one.connection);
        close_side(one.connection);
      }
    }
    (void)end_side_attempt(lock, link.confirming);
    close_side(link.confirming);
    if (!link.attempt) continue;
    lock.unlock();
    pthread_join(link.attempt->thread, nullptr);
    lock.lock();
    link.attempt.reset();
  }
}

// Does all that is due now, and sleeps until more is.
void Runtime::run_background_once(Lock &lock) {
  if (!roles_->is_led() && is_broken()) disconnect_as(lock, background_);
  // By number, because a cluster may get further links meanwhile.
  for (size_t i = 0; i < links_.size(); i++) {
    Link &link = links_[i];
    if (link.attempt && link.attempt->is_over) end_attempt(lock, link);
    if (link.sentinel) connect_now(link, boot_now());
    const bool is_free = !link.attempt && !is_stopping_;
    if (is_free && service_->begin_connect(link.node, boot_now())) start_attempt(link);
    if (link.sentinel) tend_watch(lock, link);
  }
  for (size_t i = 0; i < links_.size(); i++) tend_confirming(lock, links_[i]);
  tick(lock);
  for (Link &link : links_) send_confirming(link);
  net::EpollSet::Seen seen;
  const uint64_t watched = connection_count_;
  poll_as(lock, background_, background_set_.event(),
          [&] { seen = background_set_.wait(background_wakes_at_); });
  act_on(lock, background_, seen, watched);
  for (const net::EpollSet::Ready &ready : seen) {
    if (ready.key > 0) on_ready(lock, ready.key - 1);
  }
  wake_all(lock);
}

// A connection that only this thread reads, by its key: see Link::key_of().
void Runtime::on_ready(Lock &lock, uint32_t number) {
  Link &link = links_[number / Link::kPolledCount];
  const uint32_t polled = number % Link::kPolledCount;
  if (polled >= Link::kWatch) return read_watch(lock, link, polled - Link::kWatch);
  switch (polled) {
    case Link::kMessages:
      return read_messages(lock, link);
    case Link::kCommands:
      return on_end(lock, link);
    default:
      return read_confirming(lock, link);
  }
}

// ---- time --------------------------------------------------------------------------------------

// Run the timers that are due, and compute the next wake-up.
void Runtime::tick(Lock &lock) {
  read_remaining(lock);
  const Nanos now = boot_now();
  const bool has_run = run_timers(now);
  credentials_.on_timer(now);
  wake_late(now);
  if (is_draining_) wake(drain_waiter_);
  if (reader_) flush(lock);
  end_turn(lock);
  // Every command moves the time at which its reply would be late, and every request sets a timer
  // that usually ends early. One wake-up per command timeout, or at the time of a timer that was
  // removed, costs less than a wake-up for each change.
  Nanos due = std::min({service_->next_due(), credentials_.next_due(), waits_until_});
  if (was_active_) due = std::min(due, now + timeout_);
  for (const Link &link : links_) {
    if (link.sentinel) due = std::min(due, link.sentinel->watch.next_due(link.wants_watch()));
  }
  if (reader_ && service_->in_flight_count(0) > 0) due = before_too_late(due, now);
  if (!has_run) due = std::max(due, now + kPauseAfterException);  // what is due may fail again
  was_active_ = false;
  if (due < background_wakes_at_ || background_wakes_at_ <= now) background_wakes_at_ = due;
}

// The queue's thread may poll late. A reply that arrived in time must not count as late for that.
void Runtime::read_remaining(Lock &lock) {
  while (reader_ && !roles_->is_led() && is_usable()) {
    if (!read_once(lock, background_)) return;
  }
}

// @return false after an exception: reconnecting repeats what was due.
bool Runtime::run_timers(Nanos now) {
  try {
    service_->on_timer(now);
    return true;
  } catch (...) {
    drop_links_after_exception();
    return false;
  }
}

// The caller is about to sleep until `limit`, which the kernel counts without suspended time.
void Runtime::wake_by(Nanos limit) {
  if (limit >= waits_until_) return;
  waits_until_ = limit;
  if (limit < background_wakes_at_) wake(background_);
}

// Wake the callers that sleep with a limit, once one of the limits has passed. Those that sleep
// again say until when.
void Runtime::wake_late(Nanos now) {
  if (now < waits_until_) return;
  waits_until_ = kNever;
  wake_lease_waiters();
  for (const WaiterList *list : {&short_, &long_}) {
    for (Waiter *waiter = list->front(); waiter != nullptr; waiter = waiter->next) wake(*waiter);
  }
  for (Waiter *waiter : {roles_->leader(), roles_->follower()}) {
    if (waiter != nullptr && waiter != &background_) wake(*waiter);
  }
}

void Runtime::call_background_in_time() {
  if (service_->next_due() < background_wakes_at_) wake(background_);
}

// ---- connecting --------------------------------------------------------------------------------

void Runtime::start_attempt(Link &link) {
  link.attempt.emplace(*this, link);
  int error = ENOMEM;
  try {
    if (link.sentinel) link.attempt->found.known = link.sentinel->begin_attempt();
    if (link.reads_slots()) link.attempt->slots.servers = service_->known_servers();
    link.attempt->channel = service_->channel(link.node);
    error = start_thread(link.attempt->thread, attempt_main, &*link.attempt);
  } catch (...) {
    (void)log_.add_caught();
    error = ENOMEM;
  }
  if (error == 0) return;
  link.attempt.reset();
  try {
    service_->on_connect_failed(link.node, no_thread(error), boot_now());
  } catch (...) {
    (void)log_.add_caught();  // the service has scheduled the next attempt anyway
  }
}

void *Runtime::attempt_main(void *attempt) {
  pthread_setname_np(pthread_self(), "redlatch-dial");
  auto &mine = *static_cast<Attempt *>(attempt);
  mine.runtime.attempt(mine);
  return nullptr;
}

// In the thread of the attempt. No other thread touches `mine` until is_over.
void Runtime::attempt(Attempt &mine) {
  try {
    mine.outcome = connect_with_credentials(
        mine.link.settings, mine.login,
        [this, &mine](const Settings &settings) { return connect(mine, settings); });
  } catch (...) {
    mine.outcome.status = log_.add_caught();
  }
  Lock lock(mutex_);
  mine.is_over = true;
  wake(background_);
  wake_all(lock);
}

Outcome Runtime::connect(Attempt &mine, const Settings &settings) const {
  const Link &link = mine.link;
  mine.connections = {};
  if (link.reads_slots()) return read_slots(settings, stop_event_.fd(), mine.slots);
  if (link.sentinel) {
    return open_primary(settings, mine.channel, link.sentinel->stop.fd(), mine.found,
                        mine.connections);
  }
  return open_connections(settings, mine.channel, link.attachment.get(), service_->needs_identity(),
                          stop_event_.fd(), mine.connections);
}

void Runtime::end_attempt(Lock &lock, Link &link) {
  lock.unlock();
  pthread_join(link.attempt->thread, nullptr);
  lock.lock();
  Attempt ended = std::move(*link.attempt);
  link.attempt.reset();
  if (link.reads_slots()) return end_reading_slots(link, ended);
  const ServerFacts &facts = ended.connections.facts;
  try {
    if (is_of_cluster(link, ended)) return become_cluster(link);
    if (link.sentinel) note_primary(link, ended.found, ended.outcome);
    if (ended.outcome.ok()) connect_link(link, ended);
    if (ended.outcome.ok()) {
      authenticate(link);
      service_->on_connected(link.node, facts, boot_now());
      for (const net::ReplyPtr &push : link.commands->take_pushes()) {
        take_message(link, *push, boot_now());
      }
    } else {
      service_->on_connect_failed(link.node, ended.outcome, boot_now());
    }
    // Last, because its log lines may fail to allocate.
    note_connection(link, ended.outcome, facts);
    if (link.sentinel && ended.outcome.ok()) log_primary(link, ended.found.opinion, facts);
    const bool is_checked = link.settings.is_health_checked && link.settings.folder.empty();
    if (ended.outcome.ok() && is_checked) {
      service_->check_later(link.node, boot_now() + health_delay(ended.channel));
    }
  } catch (...) {
    (void)log_.add_caught();
    link.drop();
  }
  if (is_draining_) wake(drain_waiter_);
}

// The URL names one server, which says that it is one of several.
bool Runtime::is_of_cluster(const Link &link, const Attempt &ended) const {
  return ended.outcome.ok() && ended.connections.facts.role == NodeRole::kClusterMember &&
         !settings().is_cluster() && !is_quorum() && !link.sentinel && !settings().host.empty();
}

// Called before the connection is used: no other thread reads or sends. Throws std::bad_alloc, and
// then the attempt has failed.
void Runtime::become_cluster(Link &link) {
  std::array<uint8_t, 16> random{};
  std::array<uint8_t, 8> seed{};
  if (!fill_random(random) || !fill_random(seed)) {
    return service_->on_connect_failed(
        link.node,
        failure(Status::kInternal, "cannot get random bytes from the kernel: " + reason_of(errno)),
        boot_now());
  }
  Settings &settings = nodes_.front();
  const std::string text = settings.address() +
                           " is a node of a cluster: locks are on all its nodes, as with " +
                           "redis+cluster://";
  settings.cluster.addresses = {{settings.host, settings.port}};
  uint64_t number = 0;
  for (const uint8_t byte : seed) number = number << 8 | byte;
  lock::Output &output = *this;
  std::unique_ptr<lock::LockClient> client(static_cast<lock::LockClient *>(service_.release()));
  try {
    all_links_.emplace();
    if (!all_links_->is_open() || watch_all_links() != 0) throw std::bad_alloc();
    service_ = std::make_unique<cluster::ClusterClient>(settings, random, number, output,
                                                        std::move(client));
  } catch (...) {
    all_links_.reset();
    settings.cluster.addresses.clear();
    service_ = std::move(client);
    service_->on_connect_failed(link.node, {Status::kNoMemory, {}}, boot_now());
    throw;
  }
  drop_reader();
  log_.add(LogLevel::kInfo, text);
}

void Runtime::end_reading_slots(Link &link, Attempt &ended) {
  const Nanos now = boot_now();
  try {
    if (ended.outcome.ok()) {
      service_->on_slots_read(ended.slots.ranges, now);
    } else {
      service_->on_connect_failed(link.node, ended.outcome, now);
    }
    note_connection(link, ended.outcome, ended.slots.facts);
  } catch (...) {
    return (void)log_.add_caught();  // what was planned is done with the next event, or read again
  }
  if (is_draining_) wake(drain_waiter_);
}

// Once, before the first connection: the threads that do not lead watch the set of all links.
int Runtime::watch_all_links() const {
  const int error = background_set_.add(all_links_->fd(), 0, net::EpollSet::kEnd);
  return error != 0 ? error : caller_set_.add(all_links_->fd(), 0, net::EpollSet::kEnd);
}

// @return 0, or why some set does not poll it.
int Runtime::watch_new(const Link &link) {
  connection_count_++;
  const int fd = link.commands->fd();
  const auto number = static_cast<uint32_t>(link.node);
  std::array<int, 4> errors{};
  if (all_links_) {
    errors[0] = all_links_->add(fd, number);
    errors[1] =
        background_set_.add(fd, Link::key_of(link.node, Link::kCommands), net::EpollSet::kEnd);
  } else {
    errors[0] = caller_set_.add(fd, 0, net::EpollSet::kEnd);
    errors[1] = background_set_.add(fd, 0, net::EpollSet::kEnd);
    if (reader_) errors[2] = reader_->add_socket(fd);
    note_role(roles_.give(&ReadingRoles::forget_drained));
  }
  if (link.messages) {
    errors[3] = background_set_.add(link.messages->fd(), Link::key_of(link.node, Link::kMessages));
  }
  const auto failed =
      std::find_if(errors.begin(), errors.end(), [](int error) { return error != 0; });
  return failed == errors.end() ? 0 : *failed;
}

// A connection that some set does not poll is closed: its replies would not be read. The attempt
// has failed then.
void Runtime::connect_link(Link &link, Attempt &ended) {
  unwatch_messages(link);
  link.facts.is_sharded = ended.connections.facts.is_sharded;  // take_message() depends on it
  link.connect(std::move(ended.connections));
  link.login = ended.login.number;
  const int error = watch_new(link);
  if (error == 0) return;
  unwatch(link);
  unwatch_messages(link);
  link.disconnect();
  link.messages.reset();
  ended.outcome = not_watched(link.settings, error);
}

// The message connection of RESP2. Only the background thread reads and replaces it, so no role is
// needed. A thread that disconnects shuts it, and it is closed here.
void Runtime::read_messages(Lock &lock, Link &link) {
  if (!link.messages) return;
  std::vector<net::ReplyPtr> replies;
  lock.unlock();
  const auto received = link.messages->receive(replies);
  lock.lock();
  try {
    const Nanos now = boot_now();
    for (const net::ReplyPtr &reply : replies) take_message(link, *reply, now);
    if (!replies.empty()) service_->on_messages_heard(link.node, now);
  } catch (...) {
    (void)log_.add_caught();
    link.drop();
  }
  if (received != net::Connection::Received::kEnded) return;
  // Without messages this client would wait slowly: drop the command connection, too.
  unwatch_messages(link);
  link.messages.reset();
  link.drop();
}

// Logs changes only: an outage of an hour is one line.
void Runtime::note_connection(Link &link, const Outcome &outcome, const ServerFacts &facts) {
  if (!outcome.ok()) {
    if (!link.is_away) log_.add(LogLevel::kWarning, outcome.message);
    link.is_away = true;
    link.failure = outcome;
    return;
  }
  if (link.is_broken) return;  // the service has dropped it again, and connects anew
  if (link.is_away) {
    log_.add(LogLevel::kInfo, "connected to " + link.settings.address() + " again");
  }
  link.is_away = false;
  const bool is_news =
      link.facts.is_push_trusted || facts.why_not_trusted != link.facts.why_not_trusted;
  if (!has_several() && !facts.is_push_trusted && is_news) {
    log_.add(LogLevel::kWarning, "waiting by polling, which is slower: " + facts.why_not_trusted);
  }
  link.failure = {};
  link.facts = facts;
}

}  // namespace redlatch::runtime
