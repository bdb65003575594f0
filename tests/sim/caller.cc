// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "caller.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

#include "memory.h"

namespace redlatch::sim {

using lock::Request;

namespace {

constexpr Nanos kWaitSlack = 10 * kMs;

}  // namespace

// `a` and `{a}` are two locks.
std::string lock_name(int number) {
  static const char *const kNames[] = {"a", "{a}", "orders/{7}", "b"};
  return kNames[number % 4];
}

Caller::Caller(Context &context, Client &client, uint64_t stream)
    : context_(context),
      client_(client),
      random_(context.plan.seed, stream),
      is_alive_(std::make_shared<bool>(true)) {}

Caller::~Caller() { *is_alive_ = false; }

void Caller::later(Nanos delay, void (Caller::*action)()) {
  context_.schedule.in(delay, [this, action, turn = turn_, alive = is_alive_] {
    if (!*alive || turn != turn_) return;
    if (client_.is_paused()) {
      return later(client_.paused_until() - context_.schedule.now(), action);
    }
    (this->*action)();
  });
}

void Caller::begin() { later(random_.between(0, 200 * kMs), &Caller::act); }

void Caller::think() {
  turn_++;
  const bool is_quick = random_.chance(300);
  later(random_.between(0, is_quick ? 2 * kMs : context_.plan.think_max), &Caller::act);
}

std::string Caller::any_name() {
  return lock_name(static_cast<int>(random_.below(static_cast<size_t>(context_.plan.name_count))));
}

void Caller::act() {
  if (!context_.is_working) return;
  const int64_t what = random_.between(0, 99);
  if (what < 2 && !context_.plan.is_quorum()) return inspect();
  if (what < 2 + context_.plan.force_percent && context_.plan.has(Fault::kForce)) return force();
  if (what >= 100 - context_.plan.cap_percent) return set_cap();
  const int observer_percent = context_.plan.observer_percent;
  if (observer_percent > 0 && random_.chance(10 * observer_percent)) return observe();
  acquire();
}

// Memory that `fill` allocates counts as the product's.
template <class Fill>
void Caller::start(Request::What what, void (Caller::*then)(), const Fill &fill) {
  turn_++;
  {
    const CoreMemory::Scope scope;
    request_ = std::make_shared<Request>(what);
    fill(*request_);
  }
  client_.start(request_, [this, then, turn = turn_, alive = is_alive_] {
    if (*alive && turn == turn_) (this->*then)();
  });
}

// ---- taking ------------------------------------------------------------------------------------

lock::AcquireOptions Caller::options() {
  const Plan &plan = context_.plan;
  lock::AcquireOptions options;
  const int64_t low = plan.lease_min / kMs;
  const int64_t high = random_.chance(600) ? std::min<int64_t>(plan.lease_max / kMs, low + 400)
                                           : plan.lease_max / kMs;
  options.ttl = random_.between(low, std::max(low, high)) * kMs;
  options.is_renewed = random_.chance(plan.is_of_rates() ? 100 : 850);
  options.is_confirmed = random_.chance(100);
  options.max_local_handoffs =
      random_.chance(600) ? kDefaultLocalHandoffs : static_cast<int>(random_.between(0, 3));
  if (context_.plan.kills_crowds()) options.max_local_handoffs = 0;
  // Half a ttl can be less than what the clocks differ by: see Client::note_loss().
  if (context_.plan.scenario == Scenario::kClusterClocks) options.max_local_handoffs = 0;
  if (random_.chance(200)) options.label = "deploy";
  if (plan.yield_every > 0) {
    options.yield_every = static_cast<int>(plan.yield_every);
  }
  if (plan.has(Fault::kMaxHold) && random_.chance(150)) {
    options.max_hold = random_.between(options.ttl / 4 + 1, 2 * options.ttl);
  }
  if (plan.is_shared()) share(options);
  if (plan.retain_percent > 0 && random_.chance(10 * plan.retain_percent)) {
    options.retain = random_.between(20, 4'000) * kMs;
  }
  if (plan.min_replicas > 0 && random_.chance(850)) {
    options.min_replicas = static_cast<int>(random_.between(1, plan.min_replicas));
    options.sync_timeout = random_.between(5, random_.chance(500) ? 100 : 2'000) * kMs;
  }
  return options;
}

// Owners of a hash are shared by all clients; owners of a read-write lock belong to one client.
void Caller::share(lock::AcquireOptions &options) {
  const Plan &plan = context_.plan;
  options.format = plan.format;
  if (plan.limit > 0) {
    options.limit = plan.limit + (random_.chance(100) ? 1 : 0);
    options.permits = static_cast<int>(random_.chance(600) ? 1 : random_.between(1, options.limit));
    return;
  }
  if (random_.chance(10 * plan.read_percent)) options.mode = protocol::Mode::kRead;
  if (plan.owner_count == 0) return;
  const bool is_hash = plan.format == protocol::Format::kHash;
  if (!random_.chance(is_hash ? 850 : 250)) return;
  options.owner = "owner " + std::to_string(random_.below(static_cast<size_t>(plan.owner_count)));
}

// Two or three, in any order.
void Caller::choose_names(lock::Request &request) {
  std::vector<int> numbers(static_cast<size_t>(context_.plan.name_count));
  std::iota(numbers.begin(), numbers.end(), 0);
  auto names = std::make_unique<std::vector<lock::NamedMode>>();
  for (int64_t left = random_.between(2, 3); left > 0; left--) {
    const auto at = numbers.begin() + static_cast<long>(random_.below(numbers.size()));
    const bool reads = random_.chance(10 * context_.plan.read_percent);
    names->push_back({lock_name(*at), reads ? protocol::Mode::kRead : protocol::Mode::kWrite});
    numbers.erase(at);
  }
  name_ = names->front().name;
  request.several.names = std::move(names);
}

void Caller::acquire() {
  const int job = static_cast<int>(random_.between(0, 99));
  const Plan &plan = context_.plan;
  job_ = job < plan.run_percent                         ? Job::kRun
         : job < plan.run_percent + plan.flight_percent ? Job::kFlight
                                                        : Job::kNone;
  if (job_ == Job::kFlight) return fly();
  const int64_t kind = random_.between(0, 99);
  const int64_t limit_ms = random_.between(20, 5'000);
  auto chosen = options();
  if (job_ == Job::kRun) {
    chosen.max_local_handoffs = 0;
    period_ = random_.chance(300) ? "k" : "";
  }
  if (plan.candidate_percent > 0 && random_.chance(10 * plan.candidate_percent)) {
    chosen.max_local_handoffs = 0;
    chosen.candidate =
        "candidate " + std::to_string(client_.slot()) + "." + std::to_string(random_.below(1000));
  }
  name_ = any_name();
  asked_at_ = context_.schedule.now();
  start(Request::Op::kAcquire, &Caller::on_acquired, [&](Request &request) {
    const int names_percent = context_.plan.names_percent;
    const bool is_of_several = names_percent > 0 && random_.chance(10 * names_percent);
    if (is_of_several) {
      choose_names(request);
    } else {
      request.name = name_;
    }
    request.wait_ms = kind < 55 ? -1 : kind < 80 ? limit_ms : 0;
    request.options = std::move(chosen);
    request.lease = std::make_shared<lock::Lease>();
  });
  if (context_.plan.has(Fault::kCancel) && random_.chance(150)) {
    later(random_.between(0, 500 * kMs), &Caller::cancel);
  }
}

void Caller::fly() {
  const bool has_limit = random_.chance(300);
  const int64_t limit_ms = random_.between(20, 5'000);
  auto chosen = options();
  name_ = any_name();
  asked_at_ = context_.schedule.now();
  start(Request::Op::kAcquire, &Caller::on_acquired, [&](Request &request) {
    request.name = name_;
    request.wait_ms = has_limit ? limit_ms : -1;
    request.options = std::move(chosen);
    request.lease = std::make_shared<lock::Lease>();
    request.arguments = std::make_unique<lock::RequestArguments>();
    request.arguments->make_lease = [] { return std::make_shared<lock::Lease>(); };
  });
  if (context_.plan.has(Fault::kCancel) && random_.chance(150)) {
    later(random_.between(0, 500 * kMs), &Caller::cancel);
  }
}

void Caller::cancel() {
  if (!request_ || request_->is_finished()) return;
  context_.stats.inject(Fault::kCancel, true);
  client_.cancel(*request_);
}

// Rule: a wait ends within its limit. A process that was paused may be late.
void Caller::check_wait(const Request &request) {
  const Nanos took = context_.schedule.now() - asked_at_;
  const Nanos limit = request.wait_ms * kMs + request.wait_ms * kMs / 100 + kWaitSlack;
  if (request.wait_ms <= 0 || request.is_recalling || context_.plan.has(Fault::kPause) ||
      took <= limit)
    return;
  context_.verdict.broken("a wait ends in time", name_ + ": " + std::to_string(took / kMs) +
                                                     " ms instead of " +
                                                     std::to_string(request.wait_ms));
}

void Caller::on_acquired() {
  const auto request = std::exchange(request_, nullptr);
  if (request->op == Request::Op::kAcquire) check_wait(*request);
  if (request->status.load() != Status::kOk) return think();
  if (request->is_flight() && request->arguments->value) return think();
  lease_ = request->lease;
  if (job_ == Job::kRun) return begin_run();
  if (request->options.max_hold > 0) context_.stats.inject(Fault::kMaxHold, true);
  hold();
}

bool Caller::take(const GivenLease &given) {
  if (!is_idle() || client_.is_paused()) return false;
  auto chosen = options();
  name_ = given.name;
  context_.stats.inject(Fault::kAttach, true);
  start(Request::Op::kAttach, &Caller::on_acquired, [&](Request &request) {
    request.name = given.name;
    request.arguments->token = given.token;
    request.options = std::move(chosen);
    request.options.mode = protocol::Mode::kWrite;  // the attach sets the real one
    request.options.owner.clear();
    if (context_.plan.limit > 0) {
      request.options.permits = given.permits;
      request.options.limit = context_.plan.limit + 1;
    }
    request.lease = std::make_shared<lock::Lease>();
  });
  return true;
}

// ---- jobs --------------------------------------------------------------------------------------

void Caller::begin_run() {
  start(Request::Op::kBeginRun, &Caller::on_run_begun, [&](Request &request) {
    request.lease = lease_;
    request.arguments->period = period_;
    request.arguments->remembered_for = context_.plan.period;
    request.arguments->tries = context_.plan.tries;
  });
}

void Caller::on_run_begun() {
  const auto request = std::exchange(request_, nullptr);
  if (request->status.load() == Status::kOk) return hold();
  release();
}

// Most succeed. Some of the others say that they have failed, and some only release.
void Caller::end_job() {
  const int64_t kind = random_.between(0, 99);
  const int64_t ttl_ms = random_.between(10, context_.plan.period / kMs);
  const bool is_flight = std::exchange(job_, Job::kNone) == Job::kFlight;
  if (kind >= (is_flight ? 85 : 70)) return release();
  start(Request::Op::kRelease, &Caller::on_other, [&](Request &request) {
    request.lease = std::exchange(lease_, nullptr);
    request.arguments = std::make_unique<lock::RequestArguments>();
    request.arguments->period = period_;
    if (!is_flight) return;
    protocol::FlightValue value;
    value.is_failure = kind >= 65;
    value.type = value.is_failure ? "ValueError" : "";
    value.bytes = "of " + request.lease->token;
    request.arguments->value = std::make_shared<const protocol::FlightValue>(std::move(value));
    request.arguments->value_ttl = value.is_failure ? 10'000 * kMs : ttl_ms * kMs;
  });
}

// ---- holding -----------------------------------------------------------------------------------

void Caller::hold() {
  turn_++;
  Nanos time = random_.between(0, context_.plan.hold_max);
  // Some holds are longer than their lease, which ends if it is not renewed.
  const bool is_long = random_.chance(context_.plan.holds_long() ? 500 : 30);
  if (context_.is_working && is_long) time = random_.between(0, 2 * context_.plan.lease_max);
  const bool is_handed_over = context_.plan.scenario == Scenario::kHandover && random_.chance(600);
  if (is_handed_over) return later(time / 2, &Caller::detach);
  if (random_.chance(80)) return later(time / 2, &Caller::give_back);
  const int mode_change_chance =
      lease_->is_composite() ? 0 : 10 * context_.plan.mode_change_percent;
  if (mode_change_chance > 0 && random_.chance(mode_change_chance))
    return later(time / 2, &Caller::change_mode);
  later(time, job_ == Job::kNone ? &Caller::release : &Caller::end_job);
}

// From reading to writing, or back.
void Caller::change_mode() {
  if (!lease_) return think();
  assert(!lease_->is_composite());
  const bool is_up = lease_->mode.load() == protocol::Mode::kRead;
  const int64_t kind = random_.between(0, 99);
  const int64_t limit_ms = random_.between(20, 5'000);
  asked_at_ = context_.schedule.now();
  const auto op = is_up ? Request::Op::kUpgrade : Request::Op::kDowngrade;
  start(op, &Caller::on_mode_changed, [&](Request &request) {
    request.lease = lease_;
    // Two polling clients that wait for each other get no deadlock status.
    const int64_t longest_ms = client_.is_polling() ? limit_ms : -1;
    if (is_up) request.wait_ms = kind < 40 ? longest_ms : kind < 75 ? limit_ms : 0;
  });
  if (is_up && context_.plan.has(Fault::kCancel) && random_.chance(150)) {
    later(random_.between(0, 500 * kMs), &Caller::cancel);
  }
}

// After a deadlock the caller releases its read lock at once, so that the other reader can upgrade.
void Caller::on_mode_changed() {
  const auto request = std::exchange(request_, nullptr);
  if (request->op == Request::Op::kUpgrade) check_wait(*request);
  turn_++;
  const bool is_in_the_way = request->status.load() == Status::kDeadlock;
  const bool goes_back = !is_in_the_way && random_.chance(200);
  const bool is_long = context_.is_working && random_.chance(50);
  const Nanos longest = is_long ? context_.plan.lease_max : context_.plan.hold_max / 2;
  const Nanos time = is_in_the_way ? 0 : random_.between(0, longest);
  later(time, goes_back ? &Caller::change_mode : &Caller::release);
}

// Other ways than a release.
void Caller::give_back() {
  if (!lease_) return think();
  const int64_t way = random_.between(0, 9);
  if (way < 5 || !context_.is_working) {
    return start(Request::Op::kExtend, &Caller::on_extended, [&](Request &request) {
      request.lease = lease_;
      request.extend_to =
          random_.between(context_.plan.lease_min / kMs, context_.plan.lease_max / kMs) * kMs;
    });
  }
  if (way >= 8 && context_.plan.has(Fault::kAttach)) return detach();
  client_.release_async(*std::exchange(lease_, nullptr));
  think();
}

// Hand the token over once the server has marked the lease. Some callers hand it over before the
// mark, some without a detach, and some for a lease that was lost: such tokens cannot be attached.
void Caller::detach() {
  if (!lease_) return think();
  const int64_t kind = random_.between(0, 9);
  const GivenLease given{lease_->name, lease_->token, lease_->permits};
  if (kind == 0 && on_given) {
    on_given(given);
    turn_++;
    return later(random_.between(0, context_.plan.hold_max), &Caller::release);
  }
  start(Request::Op::kDetach, &Caller::on_detached,
        [&](Request &request) { request.lease = lease_; });
  if (kind == 1 && on_given) on_given(given);
}

void Caller::on_detached() {
  const auto request = std::exchange(request_, nullptr);
  if (client_.is_held(*request->lease)) {
    turn_++;
    return later(0, &Caller::release);
  }
  lease_ = nullptr;
  if (on_given) on_given({request->lease->name, request->lease->token, request->lease->permits});
  think();
}

void Caller::on_extended() {
  request_ = nullptr;
  turn_++;
  later(random_.between(0, context_.plan.hold_max / 2), &Caller::release);
}

void Caller::release() {
  if (!lease_) return think();
  start(Request::Op::kRelease, &Caller::on_other,
        [&](Request &request) { request.lease = std::exchange(lease_, nullptr); });
}

void Caller::on_other() {
  request_ = nullptr;
  think();
}

// ---- the rest ----------------------------------------------------------------------------------

void Caller::ask(Request::What what) {
  start(what, &Caller::on_other, [this](Request &request) { request.name = any_name(); });
}

void Caller::inspect() { ask(Request::What::ask<operate::Inspect>()); }

void Caller::observe() {
  const int64_t limit_ms = random_.between(20, 2'000);
  name_ = any_name();
  const int64_t seen = seen_.try_emplace(name_, -1).first->second;
  start(Request::What::ask<operate::Leader>(), &Caller::on_observed, [&](Request &request) {
    request.name = name_;
    request.wait_ms = limit_ms;
    request.as<operate::Leader>().seen = seen;
  });
  if (context_.plan.has(Fault::kCancel) && random_.chance(150)) {
    later(random_.between(0, 500 * kMs), &Caller::cancel);
  }
}

void Caller::on_observed() {
  const auto request = std::exchange(request_, nullptr);
  if (request->status.load() == Status::kOk) {
    seen_[name_] = request->as<operate::Leader>().info.position;
  }
  think();
}

void Caller::force() {
  context_.stats.inject(Fault::kForce, false);
  ask(Request::What::ask<operate::Force>());
}

// Most caps end soon: nobody else takes them away.
void Caller::set_cap() {
  if (random_.chance(200)) return ask(Request::What::ask<operate::Stats>());
  const bool has_cap = random_.chance(700);
  const int64_t cap = random_.between(0, context_.plan.limit);
  const int64_t for_ms = random_.between(1, 3'000);
  start(Request::What::ask<operate::SetCap>(), &Caller::on_other, [&](Request &request) {
    request.name = any_name();
    auto &task = request.as<operate::SetCap>();
    if (has_cap) task.cap = cap;
    if (has_cap) task.for_ms = for_ms;
  });
}

Nanos Caller::waiting_since() const {
  const bool can_wait =
      request_ && (request_->op == Request::Op::kAcquire || request_->op == Request::Op::kUpgrade);
  const bool is_waiting = can_wait && request_->wait_ms < 0 && !request_->is_finished();
  return is_waiting ? asked_at_ : kNever;
}

void Caller::wind_up() {
  if (!lease_) return;
  turn_++;
  later(random_.between(0, 10 * kMs), &Caller::release);
}

}  // namespace redlatch::sim
