// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "client.h"

#include <array>
#include <utility>

#include "memory.h"
#include "reply_view.h"
#include "rules.h"

namespace redlatch::sim {

namespace {

constexpr Nanos kSchedulingLimit = 200'000;  // between an event and the thread that it wakes

Clock clock_of(const Plan &plan, int slot, uint64_t life) {
  Random random(plan.seed, 100 + static_cast<uint64_t>(slot) + life * 1000);
  const Nanos start = random.between(1, 1'000'000) * kMs;
  int64_t rate = random.between(-plan.rate_limit_ppm, plan.rate_limit_ppm);
  if (plan.has_worst_rates()) rate = -plan.rate_limit_ppm;
  return {start, rate};
}

}  // namespace

Client::Client(Scene &scene, int slot, uint64_t life)
    : scene_(scene),
      slot_(slot),
      clock_(clock_of(scene.plan, slot, life)),
      random_(scene.plan.seed, 500 + static_cast<uint64_t>(slot) + life * 1000),
      is_alive_(std::make_shared<bool>(true)) {
  settings_.name_space = "app:";
  settings_.holder = "client " + std::to_string(slot);
  settings_.host = "server";
  settings_.timeout = scene.plan.timeout;
  settings_.connect_timeout = scene.plan.timeout;
  std::array<uint8_t, 16> id{};
  for (uint8_t &byte : id) byte = static_cast<uint8_t>(random_.next());
  const uint64_t seed = random_.next();
  engine::Outlet &outlet = *this;
  const CoreMemory::Scope scope;
  engine_ = std::make_unique<engine::Engine>(settings_, id, seed, outlet);
}

Client::~Client() {
  *is_alive_ = false;
  const CoreMemory::Scope scope;
  engine_.reset();
}

void Client::tell(const char *what, const engine::Request &request) {
  if (!scene_.trace.is_told()) return;
  static const char *const kOps[] = {"connect", "acquire",   "release", "extend",
                                     "upgrade", "downgrade", "attach",  "inspect",
                                     "force",   "list",      "raise",   "detach"};
  const std::string &name =
      request.name.empty() && request.lease ? request.lease->name : request.name;
  scene_.trace.say(scene_.schedule.now(), "client %d %s %s of %s, wait %lld, lease %lld ms: %d %s",
                   slot_, what, kOps[static_cast<size_t>(request.op)], name.c_str(),
                   static_cast<long long>(request.wait_ms),
                   static_cast<long long>(request.options.lease / kMs),
                   static_cast<int>(request.status.load()), request.message.c_str());
}

// ---- calls of users ----------------------------------------------------------------------------

// Whatever goes into the engine goes through here.
template <class Call>
void Client::call(const Call &call) {
  scene_.beliefs.look();
  {
    const CoreMemory::Scope scope;
    call(*engine_, now());
  }
  settle();
}

// Something that this process does by itself: not while it stands still, and not once it is gone.
template <class Action>
void Client::later(Nanos delay, Action action) {
  scene_.schedule.in(delay, [this, action, alive = is_alive_] {
    if (!*alive) return;
    if (is_paused()) return later(paused_until_ - scene_.schedule.now(), action);
    action();
  });
}

void Client::start(const RequestPtr &request, std::function<void()> done) {
  tell("starts", *request);
  calls_.emplace(request.get(), std::pair(request, std::move(done)));
  // Whoever asks to read only does not write meanwhile.
  if (request->op == engine::Request::Op::kDowngrade) {
    scene_.beliefs.change(*request->lease, wire::Mode::kRead);
  }
  call([&](engine::Engine &engine, Nanos now) { engine.start(request, now); });
}

void Client::cancel(engine::Request &request) {
  call([&](engine::Engine &engine, Nanos now) { (void)engine.cancel(request, now); });
}

void Client::abandon(engine::Lease &lease) {
  call([&](engine::Engine &engine, Nanos now) { engine.abandon(lease, now); });
}

bool Client::is_held(const engine::Lease &lease) const {
  return lease.state_at(now()) == engine::Lease::kHeld;
}

void Client::shut_down() {
  call([](engine::Engine &engine, Nanos now) { engine.shut_down(now); });
}

// ---- the outlet --------------------------------------------------------------------------------

void Client::send(size_t, std::span<const std::string_view> argv) {
  const CoreMemory::Pause pause;
  scene_.rules.sent(slot_, argv);
  out_.emplace_back(argv);
}

void Client::finished(engine::Request &request) {
  const CoreMemory::Pause pause;
  const auto found = calls_.find(&request);
  if (found == calls_.end()) return;
  const bool is_grant =
      request.op == engine::Request::Op::kAcquire || request.op == engine::Request::Op::kAttach;
  if (is_grant && request.status.load() == Status::kOk) {
    Beliefs::Holder holder{slot_, &clock_, request.lease, 0, request.lease->token};
    // What it knows of the server's clock is from before the jump, and no reply has told it yet.
    if (request.options.max_hold > 0) holder.end = after(now(), request.options.max_hold);
    if (request.op == engine::Request::Op::kAcquire) {
      holder.local_burst = request.options.local_burst;
    }
    holder.mode = request.lease->mode;
    if (request.options.format == wire::Format::kHash) holder.owner = request.options.owner;
    holder.is_attached = request.op == engine::Request::Op::kAttach;
    holder.is_excused = last_reply_at_ - scene_.plan.timeout < scene_.jumped_at;
    scene_.beliefs.begin(request.lease->name, std::move(holder));
    scene_.rules.told(request.lease->token, request.lease->fence);
    given_up_.erase(request.lease->token);
    if (request.op == engine::Request::Op::kAttach) scene_.rules.taken_over(request.lease->token);
  }
  // Refused: it is held as before.
  if (request.op == engine::Request::Op::kDetach && is_held(*request.lease) &&
      !scene_.beliefs.is_known(*request.lease)) {
    Beliefs::Holder holder{slot_, &clock_, request.lease, 0, request.lease->token};
    holder.mode = request.lease->mode;
    holder.is_attached = true;
    scene_.beliefs.begin(request.lease->name, std::move(holder));
  }
  if (request.op == engine::Request::Op::kUpgrade && request.status.load() == Status::kOk) {
    scene_.beliefs.change(*request.lease, wire::Mode::kWrite);
    scene_.rules.told(request.lease->token, request.lease->fence);
  }
  // The product's own word for a reply that it cannot read.
  if (request.message.starts_with("unexpected answer")) {
    scene_.verdict.broken("every answer is understood", request.message);
  }
  tell("ends", request);
  scene_.trace.mix(static_cast<uint64_t>(request.status.load()) + 17);
  done_.push_back(std::move(found->second.second));
  calls_.erase(found);
}

void Client::lease_ended(engine::Lease &lease) {
  const CoreMemory::Pause pause;
  const auto state = lease.state.load();
  if (state == engine::Lease::kLost) scene_.tally.lost++;
  if (state != engine::Lease::kDetached) given_up_.insert(lease.token);
  scene_.trace.say(scene_.schedule.now(), "%s: client %d ends %s: %s %s", lease.name.c_str(), slot_,
                   lease.token.c_str(),
                   state == engine::Lease::kLost ? "lost" : "given back or detached",
                   lease.reason.c_str());
  scene_.beliefs.end(lease);
}

// ---- the shell ---------------------------------------------------------------------------------

void Client::settle() {
  // A token that was passed on inside the client is still held, and may be renewed.
  for (const std::string &token : given_up_) scene_.rules.given_up(token);
  given_up_.clear();
  scene_.beliefs.judge();
  if (is_dropped_) {
    is_dropped_ = false;
    scene_.network.close(link_, Network::Ending::kSoon);
    disconnect();
  }
  if (is_up_ && !out_.empty()) scene_.network.send_up(link_, std::exchange(out_, {}));
  out_.clear();
  for (auto &done : std::exchange(done_, {})) {
    if (done) scene_.schedule.in(random_.between(0, kSchedulingLimit), std::move(done));
  }
  connect();
  arm();
}

// The engine is told of it a moment later, by another thread.
void Client::disconnect() {
  link_ = 0;
  is_up_ = false;
  later(random_.between(0, kSchedulingLimit), [this] {
    scene_.trace.say(scene_.schedule.now(), "client %d is disconnected", slot_);
    call([](engine::Engine &engine, Nanos now) { engine.on_disconnected(0, now); });
  });
}

void Client::connect() {
  if (is_connecting_) return;
  {
    const CoreMemory::Scope scope;
    if (!engine_->begin_connect(0, now())) return;
  }
  is_connecting_ = true;
  const Nanos way = scene_.network.delay() + scene_.network.delay();
  later(way, [this] { greet(); });
}

void Client::greet() {
  link_ = scene_.network.open(*this, scene_.server);
  const bool is_polling = scene_.plan.has(Fault::kPollOnly) && slot_ % 4 == 3;
  const std::string &channel = is_polling ? std::string() : engine_->channel();
  if (!scene_.server.greet(link_, channel, scene_.plan.is_sharded)) {
    scene_.network.close(link_, Network::Ending::kSoon);
    // Nobody answers: refused at once, or not before the limit.
    const Nanos wait = scene_.server.is_up() ? settings_.connect_timeout : scene_.network.delay();
    return later(wait, [this] { fail_connect("nobody answers"); });
  }
  const uint64_t link = link_;
  const Nanos way = scene_.network.delay() + scene_.network.delay();
  later(way, [this, link] { finish_connect(link); });
}

void Client::finish_connect(uint64_t link) {
  if (link_ != link || !scene_.network.is_open(link)) return fail_connect("the connection broke");
  scene_.server.set_ready(link);
  is_connecting_ = false;
  is_up_ = true;
  engine::ServerFacts facts;
  facts.is_sharded = scene_.plan.is_sharded;
  facts.can_track = scene_.plan.can_track;
  facts.is_push_trusted = !(scene_.plan.has(Fault::kPollOnly) && slot_ % 4 == 3);
  scene_.trace.say(scene_.schedule.now(), "client %d is connected", slot_);
  call([&](engine::Engine &engine, Nanos now) { engine.on_connected(0, facts, now); });
}

void Client::fail_connect(const std::string &why) {
  link_ = 0;
  is_connecting_ = false;
  const Outcome outcome = failure(Status::kUnavailable, why);
  call([&](engine::Engine &engine, Nanos now) { engine.on_connect_failed(0, outcome, now); });
}

void Client::arm() {
  const Nanos due = engine_->next_due();
  if (due == kNever) return;
  // An earlier one that is pending looks again.
  const Nanos soonest = std::max(clock_.when(due), scene_.schedule.now());
  if (soonest >= timer_at_) return;
  const Nanos at = soonest + random_.between(0, 50'000);
  timer_at_ = at;
  timer_number_++;
  scene_.schedule.at(at, [this, number = timer_number_, alive = is_alive_] {
    if (*alive) on_time(number);
  });
}

void Client::on_time(uint64_t number) {
  if (number != timer_number_) return;
  timer_at_ = kNever;
  if (is_paused()) {
    is_time_due_ = true;
    return;
  }
  if (engine_->next_due() > now()) return arm();
  call([](engine::Engine &engine, Nanos now) { engine.on_timer(now); });
}

// ---- the connection ----------------------------------------------------------------------------

void Client::received(uint64_t link, Messages messages) {
  // What comes before the handshake is over is not looked at.
  if (link != link_ || (!is_up_ && !is_paused())) return;
  if (is_paused()) {
    inbox_.push_back(std::move(messages));
    return;
  }
  take(std::move(messages));
}

void Client::take(Messages messages) {
  if (!is_up_) return;
  const uint64_t link = link_;
  for (const Message &message : messages) {
    if (link != link_) return;
    call([&](engine::Engine &engine, Nanos now) {
      switch (message.kind) {
        case Message::Kind::kReply: {
          if (!is_resuming_) last_reply_at_ = scene_.schedule.now();
          const ReplyView view(message.value);
          return engine.on_reply(0, view.get(), now);
        }
        case Message::Kind::kPush:
          return engine.on_push(0, message.text, now);
        case Message::Kind::kInvalidation:
          return engine.on_invalidated(0, message.text, now);
      }
    });
  }
}

void Client::closed(uint64_t link) {
  if (link != link_ || is_connecting_) {
    if (link == link_) link_ = 0;
    return;
  }
  if (is_paused()) {
    is_closed_due_ = true;
    return;
  }
  disconnect();
}

void Client::pause(Nanos until) {
  paused_until_ = std::max(paused_until_, until);
  scene_.schedule.at(paused_until_, [this, alive = is_alive_] {
    if (*alive) resume();
  });
}

// What came meanwhile and what fell due meanwhile are looked at by two threads.
void Client::resume() {
  if (is_paused()) return;
  scene_.trace.say(scene_.schedule.now(), "client %d goes on", slot_);
  const bool is_time_first = random_.chance(500);
  const auto run_time = [&] {
    if (!std::exchange(is_time_due_, false)) return;
    call([](engine::Engine &engine, Nanos now) { engine.on_timer(now); });
  };
  if (is_time_first) run_time();
  is_resuming_ = true;  // what was said meanwhile is no news of the server's clock
  for (Messages &messages : std::exchange(inbox_, {})) take(std::move(messages));
  is_resuming_ = false;
  if (std::exchange(is_closed_due_, false) && is_up_) disconnect();
  run_time();
}

void Client::forget_connection(Network::Ending ending) {
  if (link_ != 0) scene_.network.close(link_, ending);
  link_ = 0;
  is_up_ = false;
}

}  // namespace redlatch::sim
