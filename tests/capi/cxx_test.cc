// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Goal: the C++ header does what it says over a real server, with the standard's own lock types.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "harness.h"
#include "redlatch/redlatch.hpp"
#include "server.h"

using namespace std::chrono_literals;

namespace {

static_assert(std::is_nothrow_move_constructible_v<redlatch::client>);
static_assert(std::is_nothrow_move_constructible_v<redlatch::lease>);
static_assert(!std::is_copy_constructible_v<redlatch::client>);
static_assert(!std::is_copy_constructible_v<redlatch::lease>);
static_assert(!std::is_copy_constructible_v<redlatch::acquire_options>);
static_assert(std::is_nothrow_move_constructible_v<redlatch::redlock>);
static_assert(!std::is_copy_constructible_v<redlatch::redlock>);
static_assert(!std::is_move_constructible_v<redlatch::mutex>);
static_assert(noexcept(std::declval<redlatch::mutex&>().unlock()));

redlatch::client open_client() { return redlatch::client::open(server_url()); }

bool is_free(const char* name) { return server_number("EXISTS", name, nullptr) == 0; }

// The status of the error that `action` throws; RL_OK if it does not.
template <typename Action>
rl_status status_of(Action action) {
  try {
    action();
  } catch (const redlatch::error& error) {
    CHECK(error.what()[0] != '\0');
    return error.status();
  }
  return RL_OK;
}

void open_throws_what_is_wrong() {
  try {
    static_cast<void>(redlatch::client::open("redis://localhost?timout=1s"));
    CHECK(false);
  } catch (const redlatch::error& error) {
    CHECK_INT(RL_E_INVALID, error.status());
    CHECK_HAS("command_timeout", error.what());
    CHECK(!error.is(RL_RETRYABLE));
  }
  redlatch::client nowhere = redlatch::client::open(
      "redis://127.0.0.1:1", redlatch::client_options().set("connect_timeout", "100ms"));
  CHECK_INT(RL_E_UNAVAILABLE, status_of([&] { nowhere.connect(); }));
  CHECK_INT(RL_E_UNAVAILABLE, status_of([&] { static_cast<void>(nowhere.try_acquire("x")); }));
}

void an_empty_attempt_names_the_holder() {
  redlatch::client client =
      redlatch::client::open(server_url(), redlatch::client_options().set("holder", "web-1/4711"));
  redlatch::client other = open_client();
  const auto lease = client.try_acquire("named");
  if (!CHECK(lease.has_value())) return;
  // A client writes its name only for a lock that it holds for longer than a moment.
  while (other.try_acquire("named").why().find("holder: web-1/4711") == std::string::npos) {
    std::this_thread::sleep_for(1ms);
  }
  const redlatch::attempt late = other.acquire("named", 300ms);
  CHECK(!late);
  CHECK_INT(RL_TIMEOUT, late.status());
  CHECK(late.why().find("holder: web-1/4711") != std::string::npos);
  const std::optional<redlatch::lease> plain = other.try_acquire("named");
  CHECK(!plain.has_value());
}

void acquire_is_empty_when_busy() {
  redlatch::client client = open_client();
  auto lease = client.try_acquire("cxx");
  if (!CHECK(lease.has_value())) return;
  CHECK_INT(RL_OK, lease.status());
  CHECK(lease.why().empty());
  CHECK(!client.try_acquire("cxx"));
  const auto start = std::chrono::steady_clock::now();
  CHECK(!client.acquire("cxx", 300ms));
  CHECK(std::chrono::steady_clock::now() - start >= 300ms);
  CHECK_INT(RL_E_INVALID, status_of([&] { static_cast<void>(client.try_acquire("")); }));
  CHECK(lease->held());
  CHECK(lease->fence() > 0);
  CHECK(lease->remaining() > 20s && lease->remaining() < 30s);
  CHECK_INT(32, lease->token().size());
  CHECK_INT(RL_OK, status_of([&] { lease->check(); }));
  lease->extend(60s);
  CHECK(lease->remaining() > 50s);
  lease->release();
  CHECK(is_free("cxx"));
  CHECK(!lease->held());
  CHECK_INT(RL_E_NOT_HELD, status_of([&] { lease->release(); }));
  CHECK_INT(RL_E_NOT_HELD, status_of([&] { lease->check(); }));
}

// A call that waits says for how long: none has a default that tries once, or waits for ever.
template <typename T, typename = void>
constexpr bool kWaitsByDefault = false;
template <typename T>
constexpr bool
    kWaitsByDefault<T, std::void_t<decltype(std::declval<T&>().acquire(std::string_view()))>> =
        true;
static_assert(!kWaitsByDefault<redlatch::client> && !kWaitsByDefault<redlatch::redlock>);
static_assert(!std::is_convertible_v<decltype(redlatch::forever), std::chrono::milliseconds>);
static_assert(!std::is_convertible_v<int, redlatch::wait_limit>);

void a_wait_that_has_passed_is_one_try() {
  redlatch::client client = open_client();
  auto lease = client.try_acquire("limit");
  CHECK(lease.has_value());
  CHECK_INT(RL_BUSY, client.acquire("limit", -1ms).status());
  CHECK_INT(RL_BUSY, client.acquire("limit", std::chrono::hours::min()).status());
  CHECK_INT(RL_BUSY, client.try_acquire_read("limit").status());
  CHECK_INT(RL_BUSY, client.try_acquire_write("limit", redlatch::acquire_options()).status());
  CHECK_INT(1, redlatch::wait_limit(100us).ms());
  CHECK_INT(0, redlatch::wait_limit(0s).ms());
  CHECK_INT(1, redlatch::wait_limit(1ns).ms());
  CHECK_INT(-1, redlatch::wait_limit(redlatch::forever).ms());
  CHECK_INT(-1, redlatch::wait_limit(std::chrono::hours::max()).ms());
  std::thread waiting([&] { CHECK(client.acquire("limit", redlatch::forever).has_value()); });
  lease->release();
  waiting.join();
}

void names_may_hold_any_bytes() {
  redlatch::client client = open_client();
  const std::string first("a\0b", 3);
  const auto lease = client.try_acquire(first);
  CHECK(lease.has_value());
  CHECK(lease && lease->name() == first);
  CHECK(client.try_acquire("a").has_value());
  CHECK(client.try_acquire(std::string("a\0c", 3)).has_value());
  CHECK(!client.try_acquire(first).has_value());
}

void a_lease_releases_at_the_end_of_its_scope() {
  redlatch::client client = open_client();
  {
    auto lease = client.try_acquire("scope");
    CHECK(lease.has_value());
    const auto moved = std::move(lease);
    CHECK(moved->held());
    CHECK(!is_free("scope"));
  }
  EVENTUALLY(is_free("scope"), 2000);
}

void a_detached_lease_is_attached_elsewhere() {
  redlatch::client first = open_client();
  redlatch::client second = open_client();
  std::string token;
  {
    auto lease = first.try_acquire("detached");
    if (!CHECK(lease.has_value())) return;
    token = lease->token();
    CHECK(token == lease->detach());
    CHECK_INT(RL_E_NOT_HELD, status_of([&] { lease->detach(); }));
    CHECK(!lease->held());
  }
  redlatch::lease attached = second.attach("detached", token);
  CHECK(attached.held());
  CHECK(attached.name() == "detached");
  CHECK_INT(0, attached.fence());
  attached.release();
  CHECK(is_free("detached"));
  CHECK_INT(RL_E_NOT_HELD, status_of([&] { static_cast<void>(second.attach("detached", token)); }));
}

void a_lock_is_taken_by_force() {
  redlatch::client client = open_client();
  auto lease = client.try_acquire("forced", redlatch::acquire_options().ttl(300ms));
  if (!CHECK(lease.has_value())) return;
  CHECK_INT(RL_LEASE_HELD, lease->wait_lost(0ms));
  CHECK(!client.force_release("forced", std::string(RL_TOKEN_BYTES, 'x')));
  CHECK(client.force_release("forced", lease->token()));
  CHECK_INT(RL_LEASE_LOST, lease->wait_lost(redlatch::forever));
  CHECK(!client.force_release_any("forced"));
  CHECK_INT(RL_E_INVALID, status_of([&] { client.force_release("forced", ""); }));
}

void holders_are_asked_to_finish() {
  redlatch::client client = open_client();
  redlatch::client other = open_client();
  auto lease = client.try_acquire("asked", redlatch::acquire_options().retain(5s));
  if (!CHECK(lease.has_value())) return;
  CHECK_INT(0, lease->recall_count());
  CHECK_INT(1, other.recall("asked", "deploy"));
  CHECK_INT(0, other.recall("another"));
  lease->extend(30s);
  CHECK_INT(1, lease->recall_count());
  CHECK(lease->recall_reason() == "deploy");
  CHECK_INT(RL_E_INVALID, status_of([&] { other.recall("asked", std::string(129, 'r')); }));
}

void options_reach_the_server() {
  redlatch::client client = open_client();
  const auto options = redlatch::acquire_options().ttl(5s).renew(false).label("nightly");
  const auto lease = client.try_acquire("options", options);
  CHECK(lease.has_value());
  CHECK(options.get("ttl") == "5000ms" && options.get("renew") == "no");
  const int64_t left_ms = server_number("PTTL", "options", nullptr);
  CHECK(left_ms > 3000 && left_ms <= 5000);
  CHECK_INT(RL_E_INVALID,
            status_of([] { static_cast<void>(redlatch::acquire_options().ttl(1ms)); }));
  CHECK_INT(RL_E_INVALID, status_of([] {
              static_cast<void>(redlatch::acquire_options().max_local_handoffs(99));
            }));
  // A mistake counts until the option is set right.
  redlatch::acquire_options corrected;
  const auto with_corrected = [&] {
    static_cast<void>(client.try_acquire("corrected", corrected));
  };
  CHECK_INT(RL_E_INVALID, status_of([&] { corrected.ttl(5ms); }));
  CHECK_INT(RL_E_INVALID, status_of([&] { corrected.max_local_handoffs(99); }));
  corrected.ttl(5s);
  CHECK_INT(RL_E_INVALID, status_of(with_corrected));
  corrected.max_local_handoffs(0);
  CHECK_INT(RL_OK, status_of(with_corrected));
}

void a_semaphore_has_permits() {
  auto client = redlatch::client::open(server_url());
  const auto two = redlatch::acquire_options().set("limit", "3").set("permits", "2");
  const auto one = redlatch::acquire_options().set("limit", "3");
  auto held = client.try_acquire("permits", two).value();
  CHECK_INT(2, held.permits());
  CHECK(!client.try_acquire("permits", two));
  CHECK_INT(1, client.try_acquire("permits", one).value().permits());
  held.release();
}

void several_names_are_one_lease() {
  auto client = redlatch::client::open(server_url());
  const auto both = redlatch::names().write("cxx-b").read("cxx-a");
  auto lease = client.acquire_all(both, 1s).value();
  CHECK_INT(2, lease.part_count());
  CHECK_INT(lease.fence(), lease.part_fence(0));
  CHECK(lease.part_fence(1) > 0);
  CHECK(client.try_acquire_read("cxx-a").has_value());
  const auto busy = client.acquire_all(redlatch::names().write("cxx-c").write("cxx-a"), 0s,
                                       redlatch::acquire_options().ttl(1min));
  CHECK(!busy && busy.status() == RL_BUSY);
  lease.release();
  CHECK_INT(3, client.acquire_all(redlatch::names().path("cxx/b/c"), 1s).value().part_count());
  CHECK_INT(RL_E_INVALID, status_of([] { redlatch::names().write("x").read("x"); }));
  CHECK_INT(RL_E_INVALID, status_of([] { redlatch::names().path("x//y"); }));
}

void two_mutexes_are_locked_together() {
  redlatch::client client = open_client();
  redlatch::mutex first(client, "first");
  redlatch::mutex second(client, "second");
  int counter = 0;  // Plain: both mutexes order it.
  std::vector<std::thread> threads;
  constexpr int kThreads = 6;
  constexpr int kRounds = 40;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < kRounds; ++round) {
        // Half of them name the two the other way round: std::scoped_lock must not deadlock.
        if (i % 2 == 0) {
          const std::scoped_lock hold(first, second);
          ++counter;
        } else {
          const std::scoped_lock hold(second, first);
          ++counter;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_INT(kThreads * kRounds, counter);
  CHECK(is_free("first") && is_free("second"));
}

// Not acquired. On a busy machine the answer may come after a short wait is over, and then nobody
// knows.
template <class Try>
bool is_refused(const Try& try_it) {
  try {
    return !try_it();
  } catch (const redlatch::error& error) {
    return error.status() == RL_E_OUTCOME_UNKNOWN;
  }
}

void unique_lock_tries_and_waits() {
  redlatch::client client = open_client();
  redlatch::mutex mutex(client, "unique");
  auto holder = client.try_acquire("unique");
  if (!CHECK(holder.has_value())) return;
  CHECK(!std::unique_lock(mutex, std::try_to_lock).owns_lock());
  const auto start = std::chrono::steady_clock::now();
  CHECK(is_refused([&] { return std::unique_lock(mutex, 300ms).owns_lock(); }));
  CHECK(is_refused([&] { return std::unique_lock(mutex, start + 600ms).owns_lock(); }));
  CHECK(std::chrono::steady_clock::now() - start >= 600ms);
  // Rounded up: half a millisecond is a wait, not a single try; the past is a single try.
  CHECK(is_refused([&] { return mutex.try_lock_for(500us); }));
  CHECK(!mutex.try_lock_until(start));
  holder->release();
  std::unique_lock lock(mutex, std::defer_lock);
  CHECK(lock.try_lock_for(std::chrono::hours::max()));
  CHECK(mutex.lease().held());
  CHECK(!is_free("unique"));
  lock.unlock();
  CHECK(is_free("unique"));
  CHECK_INT(RL_E_NOT_HELD, status_of([&] { static_cast<void>(mutex.lease()); }));
}

void a_mutex_reports_misuse_and_loss() {
  redlatch::client client = open_client();
  redlatch::mutex mutex(client, "loss", redlatch::acquire_options().ttl(300ms));
  mutex.lock();
  CHECK_INT(RL_E_ALREADY_HELD, status_of([&] { mutex.lock(); }));
  CHECK_INT(RL_E_ALREADY_HELD, status_of([&] { static_cast<void>(mutex.try_lock()); }));
  try {
    mutex.lock();
  } catch (const redlatch::error& misuse) {
    CHECK_HAS("lock 'loss': this thread has locked it already", misuse.what());
  }
  CHECK_INT(1, server_number("DEL", "loss", nullptr));
  EVENTUALLY(!mutex.lease().held(), 2000);
  CHECK_INT(RL_E_LOST, status_of([&] { mutex.lease().check(); }));
  // Another thread may have it now, and the unlock of this one must leave it alone.
  std::thread other([&] {
    const std::lock_guard<redlatch::mutex> hold(mutex);
    CHECK(mutex.lease().held());
    std::thread unlocker([&] { mutex.unlock(); });
    unlocker.join();
    CHECK(mutex.lease().held());
  });
  other.join();
  mutex.unlock();
  mutex.unlock();
  CHECK(is_free("loss"));
  mutex.lock();
  mutex.unlock();
  client.shutdown();
  CHECK_INT(RL_E_CLOSED, status_of([&] { mutex.lock(); }));
}

void shared_mutex_is_read_together_and_written_alone() {
  redlatch::client client = open_client();
  redlatch::shared_mutex shared(client, "shared");
  std::shared_lock<redlatch::shared_mutex> reading(shared);
  CHECK(reading.owns_lock());
  CHECK_INT(RL_MODE_READ, shared.lease().mode());
  std::thread([&] {
    std::shared_lock<redlatch::shared_mutex> another(shared, 5s);
    CHECK(another.owns_lock());
    another.unlock();
    CHECK(!std::unique_lock<redlatch::shared_mutex>(shared, 300ms).owns_lock());
    CHECK(!shared.try_lock());
  }).join();
  CHECK_INT(RL_E_ALREADY_HELD, status_of([&] { static_cast<void>(shared.try_lock_shared()); }));
  CHECK(shared.lease().try_upgrade());
  CHECK_INT(RL_MODE_WRITE, shared.lease().mode());
  std::thread([&] { CHECK(!shared.try_lock_shared_for(300ms)); }).join();
  shared.lease().downgrade();
  std::thread([&] {
    CHECK(shared.try_lock_shared());
    shared.unlock_shared();
  }).join();
  reading.unlock();
  const std::scoped_lock writing(shared);
  CHECK_INT(RL_MODE_WRITE, shared.lease().mode());
}

void reentrant_lease_says_whether_others_are_left() {
  redlatch::client client = open_client();
  const auto options = redlatch::acquire_options().owner("me").reentrant(true);
  auto outer = client.try_acquire("reentrant", options);
  auto inner = client.try_acquire("reentrant", options);
  if (!CHECK(outer && inner)) return;
  CHECK_INT(2, inner->hold_count());
  CHECK(!client.try_acquire("reentrant", redlatch::acquire_options().owner("you").reentrant(true)));
  CHECK(!inner->release());
  CHECK(outer->release());
  CHECK(is_free("reentrant"));
}

void readers_of_one_client_upgrade_one_at_a_time() {
  redlatch::client client = open_client();
  auto first = client.try_acquire_read("upgrade");
  auto second = client.try_acquire_read("upgrade");
  if (!CHECK(first && second)) return;
  CHECK(!client.try_acquire_write("upgrade"));
  CHECK(!first->try_upgrade());
  std::thread waiting([&] { CHECK(first->upgrade(10s)); });
  rl_status status = RL_OK;
  EVENTUALLY((status = status_of([&] { static_cast<void>(second->try_upgrade()); })) != RL_OK,
             5000);
  CHECK_INT(RL_E_DEADLOCK, status);
  second->release();
  waiting.join();
  CHECK_INT(RL_MODE_WRITE, first->mode());
}

redlatch::redlock open_redlock() {
  return redlatch::redlock::open({server_url()},
                                 redlatch::client_options()
                                     .set("restart_guard", "off")
                                     .set("node_timeout", "5s"));  // for a busy machine
}

// Servers of their own are for other tests: what one node makes of a call, three do.
void redlock_is_used_as_a_client() {
  redlatch::redlock redlock = open_redlock();
  redlatch::redlock other = open_redlock();
  redlock.connect(5s);
  CHECK_INT(1, redlock.info().size());
  CHECK_INT(RL_NODE_UP, redlock.info()[0].state);
  CHECK(redlock.info()[0].clock_difference.has_value() && redlock.next_log_line().empty());
  auto lease = redlock.try_acquire("redlock");
  if (!CHECK(lease.has_value())) return;
  CHECK(lease->held());
  CHECK_INT(0, lease->fence());
  CHECK(!other.try_acquire("redlock"));
  CHECK(!other.acquire("redlock", 300ms, redlatch::acquire_options().label("other")));
  lease->release();
  CHECK(is_free("redlock"));
  lease = redlock.acquire("redlock", 5s, redlatch::acquire_options().ttl(50s));
  CHECK(lease && lease->remaining() > 40s);
  redlock.shutdown();
  CHECK(is_free("redlock"));
  CHECK_INT(RL_E_CLOSED, status_of([&] { static_cast<void>(redlock.try_acquire("redlock")); }));
}

void redlock_says_what_is_wrong() {
  const auto status_of_urls = [](const std::vector<std::string>& urls) {
    return status_of([&] { static_cast<void>(redlatch::redlock::open(urls)); });
  };
  CHECK_INT(RL_E_INVALID, status_of_urls({}));
  CHECK_INT(RL_E_INVALID, status_of_urls({"redis://a", "redis://b"}));
  CHECK_INT(RL_E_INVALID, status_of_urls({"redis://a", "redis://b", "redis://a"}));
  CHECK_INT(RL_OK, status_of_urls({"redis://a", "redis://b", "redis://c"}));
  const std::string url = server_url();
  CHECK_INT(RL_E_INVALID, status_of_urls({url + "?db=1", url + "?db=2", "redis://a"}));
  redlatch::redlock nowhere =
      redlatch::redlock::open({"redis://127.0.0.1:1", "redis://127.0.0.1:2", url});
  CHECK_INT(RL_E_UNAVAILABLE, status_of([&] { static_cast<void>(nowhere.try_acquire("x")); }));
}

void redlock_mutexes_are_lockables() {
  redlatch::redlock redlock = open_redlock();
  redlatch::mutex first(redlock, "redlock-1");
  redlatch::mutex second(redlock, "redlock-2", redlatch::acquire_options().ttl(60s));
  {
    const std::scoped_lock hold(first, second);
    CHECK(!is_free("redlock-1") && !is_free("redlock-2"));
    CHECK(second.lease().remaining() > 50s);
    CHECK_INT(RL_E_ALREADY_HELD, status_of([&] { first.lock(); }));
    std::thread([&] {
      CHECK(!first.try_lock());
      CHECK(!std::unique_lock<redlatch::mutex>(first, 300ms).owns_lock());
    }).join();
  }
  CHECK(is_free("redlock-1") && is_free("redlock-2"));
  CHECK_INT(RL_E_NOT_HELD, status_of([&] { static_cast<void>(first.lease()); }));
}

void a_job_runs_once_in_a_period() {
  auto client = open_client();
  redlatch::once_options hourly;
  int runs = 0;
  CHECK_INT(RL_E_INVALID, status_of([&] { redlatch::once(client, "job", hourly, [] {}); }));
  hourly.every = 1h;
  try {
    redlatch::once(client, "job", hourly, [] { throw std::runtime_error("no"); });
    CHECK(false);
  } catch (const std::runtime_error& failure) {
    CHECK_HAS("no", failure.what());
  }
  CHECK(redlatch::once(client, "job", hourly, [&] { runs++; }));
  CHECK(!redlatch::once(client, "job", hourly, [&] { runs++; }));
  hourly.key = "another";
  CHECK(redlatch::once(client, "job", hourly, [&] { runs++; }));
  CHECK_INT(2, runs);
  const auto held = client.acquire("job", redlatch::forever);
  hourly.key = "third";
  hourly.wait = 0ms;
  CHECK(!redlatch::once(client, "job", hourly, [&] { runs++; }));
}

void an_election_has_one_leader() {
  auto client = open_client(), another = open_client();
  CHECK(redlatch::leader(client, "office").id.empty());
  auto term = redlatch::campaign(client, "office", "one", 0ms);
  CHECK(term && !redlatch::campaign(another, "office", "two", 0ms));
  const redlatch::leader_info leads = redlatch::watch_leader(another, "office");
  CHECK(leads.id == "one");
  CHECK_INT(term->fence(), leads.term);
  CHECK_INT(RL_TIMEOUT, status_of([&] {
              static_cast<void>(redlatch::watch_leader(another, "office", leads.position, 20ms));
            }));
  term->release();
  CHECK(redlatch::watch_leader(another, "office", leads.position).id.empty());
}

void one_caller_computes_a_value() {
  auto client = open_client();
  const std::string bytes("a\0b", 3);
  CHECK(redlatch::single_flight(client, "value", 1min, [&] { return bytes; }) == bytes);
  CHECK(redlatch::single_flight(client, "value", 1min, [] { return std::string(); }) == bytes);
  CHECK_INT(RL_E_INVALID, status_of([&] {
              redlatch::single_flight(client, "big", 1min, [] { return std::string(70000, 'x'); });
            }));
  CHECK(is_free("big"));
}

void a_failure_reaches_those_that_wait() {
  auto client = open_client();
  std::atomic<bool> computes{false};
  std::thread other([&] {
    auto another = open_client();
    try {
      redlatch::single_flight(another, "failed", 1min, [&]() -> std::string {
        computes = true;
        EVENTUALLY(server_number("ZCARD", "{failed}:rl1:q", nullptr) == 1, 20000);
        throw std::runtime_error("no");
      });
      CHECK(false);
    } catch (const std::runtime_error& failure) {
      CHECK_HAS("no", failure.what());
    }
  });
  EVENTUALLY(computes.load(), 20000);
  try {
    redlatch::single_flight(client, "failed", 1min, [] { return std::string(); });
    CHECK(false);
  } catch (const redlatch::flight_error& failure) {
    CHECK_HAS("no", failure.what());
    CHECK_HAS("std::exception", failure.type().c_str());
  }
  other.join();
  CHECK(redlatch::single_flight(client, "failed", 1min, [] { return std::string("v"); }) == "v");
}

constexpr test kTests[] = {
    {"open_throws_what_is_wrong", open_throws_what_is_wrong},
    {"acquire_is_empty_when_busy", acquire_is_empty_when_busy},
    {"an_empty_attempt_names_the_holder", an_empty_attempt_names_the_holder},
    {"a_wait_that_has_passed_is_one_try", a_wait_that_has_passed_is_one_try},
    {"names_may_hold_any_bytes", names_may_hold_any_bytes},
    {"a_lease_releases_at_the_end_of_its_scope", a_lease_releases_at_the_end_of_its_scope},
    {"a_detached_lease_is_attached_elsewhere", a_detached_lease_is_attached_elsewhere},
    {"a_lock_is_taken_by_force", a_lock_is_taken_by_force},
    {"holders_are_asked_to_finish", holders_are_asked_to_finish},
    {"options_reach_the_server", options_reach_the_server},
    {"a_semaphore_has_permits", a_semaphore_has_permits},
    {"several_names_are_one_lease", several_names_are_one_lease},
    {"two_mutexes_are_locked_together", two_mutexes_are_locked_together},
    {"unique_lock_tries_and_waits", unique_lock_tries_and_waits},
    {"a_mutex_reports_misuse_and_loss", a_mutex_reports_misuse_and_loss},
    {"shared_mutex_is_read_together_and_written_alone",
     shared_mutex_is_read_together_and_written_alone},
    {"reentrant_lease_says_whether_others_are_left", reentrant_lease_says_whether_others_are_left},
    {"readers_of_one_client_upgrade_one_at_a_time", readers_of_one_client_upgrade_one_at_a_time},
    {"a_job_runs_once_in_a_period", a_job_runs_once_in_a_period},
    {"an_election_has_one_leader", an_election_has_one_leader},
    {"one_caller_computes_a_value", one_caller_computes_a_value},
    {"a_failure_reaches_those_that_wait", a_failure_reaches_those_that_wait},
    {"redlock_is_used_as_a_client", redlock_is_used_as_a_client},
    {"redlock_says_what_is_wrong", redlock_says_what_is_wrong},
    {"redlock_mutexes_are_lockables", redlock_mutexes_are_lockables},
};

}  // namespace

int main(int argc, char** argv) {
  server_url();
  return run_tests(kTests, TEST_COUNT(kTests), argc, argv);
}
