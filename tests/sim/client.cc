// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "client.h"

#include <utility>

#include "cluster.h"
#include "composite/composite_client.h"
#include "driver/services.h"
#include "memory.h"
#include "reply_view.h"

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

Client::Client(Context &context, int slot, uint64_t life)
    : context_(context),
      slot_(slot),
      clock_(clock_of(context.plan, slot, life)),
      random_(context.plan.seed, 500 + static_cast<uint64_t>(slot) + life * 1000),
      is_alive_(std::make_shared<bool>(true)),
      wallet_(*this, context, life),
      side_(*this, context) {
  const auto node_count = static_cast<size_t>(context.plan.node_count);
  settings_.reserve(node_count);  // wires refer to them
  for (size_t node = 0; node < node_count; node++) {
    Settings settings;
    settings.name_space = kNamespace;
    settings.holder = "client " + std::to_string(slot);
    settings.host = "node" + std::to_string(node);
    settings.command_timeout = context.plan.timeout;
    settings.connect_timeout = context.plan.timeout;
    settings.database = context.plan.database;
    settings.is_health_checked = false;  // the simulated servers know no question about it
    const bool has_password = context.plan.has_password || is_polling();
    if (has_password) settings.password = Server::kPassword;
    if (is_polling()) settings.user = Server::kPoller;
    if (context.plan.is_group()) name_sentinels(settings);
    if (context.plan.is_cluster()) name_nodes(settings);
    settings_.push_back(std::move(settings));
    wires_.push_back(std::make_unique<Wire>(*this, node, settings_.back()));
  }
  if (context.plan.names_one_node) {
    wires_.front()->at = server_at({settings_.front().host, settings_.front().port});
  }
  if (context.plan.is_group())
    guide_.emplace(*this, context, settings_.front(), static_cast<driver::Log &>(*this));
  make_service();
  wallet_.begin();
}

void Client::make_service() {
  const Plan &plan = context_.plan;
  quorum_settings_.node_timeout = plan.node_timeout;
  quorum_settings_.restart_guard = plan.guard == Plan::Guard::kOff ? 0 : plan.restart_guard;
  quorum_settings_.is_durable = plan.guard == Plan::Guard::kDurable;
  quorum_settings_.is_fenced = plan.is_fenced;
  quorum_settings_.min_validity = plan.min_validity;
  const auto id = random_id();
  const uint64_t seed = random_.next();
  const CoreMemory::Scope scope;
  const QuorumSettings *quorum = plan.is_quorum() ? &quorum_settings_ : nullptr;
  service_ = driver::open_service(settings_, quorum, id, seed, *this);
}

std::array<uint8_t, 16> Client::random_id() {
  std::array<uint8_t, 16> id{};
  for (uint8_t &byte : id) byte = static_cast<uint8_t>(random_.next());
  return id;
}

Client::~Client() {
  *is_alive_ = false;
  const CoreMemory::Scope scope;
  for (const auto &wire : wires_) {
    wire->login_try.reset();
    wire->opening.reset();
    wire->ended.reset();
  }
  service_.reset();
}

void Client::tell(const char *what, const lock::Request &request) {
  if (!context_.trace.is_told()) return;
  static const char *const kOps[] = {"connect", "acquire",   "release", "extend",
                                     "upgrade", "downgrade", "attach",  "inspect",
                                     "force",   "list",      "raise",   "detach"};
  const std::string &name =
      request.name.empty() && request.lease ? request.lease->name : request.name;
  context_.trace.say(
      context_.schedule.now(), "client %d %s %s of %s, wait %lld, lease %lld ms: %d %s", slot_,
      what, kOps[static_cast<size_t>(request.op)], name.c_str(),
      static_cast<long long>(request.wait_ms), static_cast<long long>(request.options.ttl / kMs),
      static_cast<int>(request.status.load()), request.message.c_str());
}

const lock::LockService &Client::inner() const {
  const auto *composites = dynamic_cast<const composite::CompositeClient *>(service_.get());
  return composites == nullptr ? *service_ : *composites->inner();
}

bool Client::is_through() const {
  if (is_cluster()) return cluster().is_idle();
  const auto *engine = dynamic_cast<const lock::LockClient *>(&inner());
  return engine != nullptr ? engine->is_idle() : service_->drained_count() == wires_.size();
}

// ---- calls of users ----------------------------------------------------------------------------

void Client::start(const RequestPtr &request, std::function<void()> done) {
  tell("starts", *request);
  note_start(*request);
  if (request->several.names || request->arguments) {
    begun_.emplace(request.get(), context_.schedule.now());
  }
  calls_.emplace(request.get(), std::pair(request, std::move(done)));
  // A caller that asks for a downgrade counts as a reader from now on.
  if (request->op == lock::Request::Op::kDowngrade) {
    context_.beliefs.change(*request->lease, protocol::Mode::kRead);
  }
  call([&](lock::LockService &service, Nanos now) { service.start(request, now); });
}

void Client::cancel(lock::Request &request) {
  call([&](lock::LockService &service, Nanos now) { (void)service.cancel(request, now); });
}

void Client::release_async(lock::Lease &lease) {
  call([&](lock::LockService &service, Nanos now) { service.release_async(lease, now); });
}

bool Client::is_held(const lock::Lease &lease) const {
  return lease.state_at(now()) == lock::Lease::kHeld;
}

// ---- the output --------------------------------------------------------------------------------

void Client::send(size_t node, std::span<const std::string_view> argv) {
  const CoreMemory::Pause pause;
  context_.checker.sent(node, slot_, argv);
  if (is_cluster()) note_command(*wires_[node], argv);
  retained_.sent(argv);
  wires_[node]->out.emplace_back(argv);
  wires_[node]->connection.on_append();
}

void Client::send_on_side(size_t, std::span<const std::string_view> argv) {
  const CoreMemory::Pause pause;
  side_.send(argv);
}

void Client::finished(lock::Request &request) {
  const CoreMemory::Pause pause;
  const auto found = calls_.find(&request);
  if (found == calls_.end()) return;
  const bool is_ok = request.status.load() == Status::kOk;
  switch (request.op) {
    case lock::Request::Op::kAcquire:
    case lock::Request::Op::kAttach:
      if (is_ok && request.is_flight() && request.arguments->value) {
        context_.checker.landed(request, begun_.at(&request));
      } else if (is_ok) {
        believe(request);
      }
      break;
    case lock::Request::Op::kDetach:
      // The detach failed, and the lease is held as before.
      if (is_held(*request.lease) && !context_.beliefs.is_known(*request.lease)) {
        Beliefs::Holder holder{slot_, &clock_, request.lease, 0, request.lease->token};
        holder.mode = request.lease->mode;
        holder.is_attached = true;
        count_permits(*request.lease, context_.plan.limit + 1, holder);
        context_.beliefs.begin(request.lease->name, std::move(holder));
      }
      break;
    case lock::Request::Op::kUpgrade:
      if (is_ok) context_.beliefs.change(*request.lease, protocol::Mode::kWrite);
      [[fallthrough]];
    default:
      if (is_ok) context_.checker.succeeded(request);
      break;
  }
  if (!is_ok) context_.checker.failed(slot_, request);
  // The product's message for a reply that it cannot read.
  if (request.message.find("unexpected answer") != std::string::npos) {
    context_.verdict.broken("every answer is understood", request.message);
  }
  tell("ends", request);
  context_.trace.mix(static_cast<uint64_t>(request.status.load()) + 17);
  done_.push_back(std::move(found->second.second));
  calls_.erase(found);
  begun_.erase(&request);
}

void Client::count_permits(const lock::Lease &lease, int limit, Beliefs::Holder &holder) const {
  if (context_.plan.limit == 0) return;
  holder.permits = lease.permits;
  holder.limit = limit;
}

void Client::believe(const lock::Request &request) {
  Beliefs::Holder holder{slot_, &clock_, request.lease, 0, request.lease->token};
  if (request.options.max_hold > 0) holder.end = after(now(), request.options.max_hold);
  // A flight was acquired with the options of the caller that was first then.
  if (request.is_flight()) holder.end = request.lease->end_at;
  holder.mode = request.lease->mode;
  if (request.options.format == protocol::Format::kHash) holder.owner = request.options.owner;
  holder.is_attached = request.op == lock::Request::Op::kAttach;
  count_permits(*request.lease, request.options.limit, holder);
  context_.checker.granted(request, last_reply_at_, holder);
  if (request.several.names) {
    Beliefs::Holder of_others = holder;
    of_others.is_excused =
        holder.is_excused || context_.beliefs.excused_all_at() >= begun_[&request];
    believe_in_others(*request.several.names, std::move(of_others));
  }
  holder.is_retained = retained_.granted(request, now());
  context_.beliefs.begin(request.lease->name, std::move(holder));
  given_up_.erase(request.lease->token);
}

// Of several names: each but the first, whose token `holder` has. Only the library knows the tokens
// of the others: what has excused one of them since the request began excuses all.
void Client::believe_in_others(std::span<const lock::NamedMode> names, Beliefs::Holder holder) {
  holder.max_local_handoffs = -1;
  for (const lock::NamedMode &other : names.subspan(1)) {
    holder.part++;
    holder.mode = other.mode;
    context_.beliefs.begin(other.name, holder);
  }
}

void Client::lease_ended(lock::Lease &lease) {
  const CoreMemory::Pause pause;
  const auto state = lease.state.load();
  if (state == lock::Lease::kLost) note_loss(lease);
  // With several names a part, which nobody believes in yet, may have been handed the token.
  // What is retained may be renewed once a caller has it again.
  const bool may_be_retained =
      state == lock::Lease::kReleased && protocol::is_recallable(lease.token);
  const bool is_checked = context_.plan.names_percent == 0 && !may_be_retained;
  if (is_checked && state != lock::Lease::kDetached) given_up_.insert(lease.token);
  context_.trace.say(context_.schedule.now(), "%s: client %d ends %s: %s %s", lease.name.c_str(),
                     slot_, lease.token.c_str(),
                     state == lock::Lease::kLost ? "lost" : "given back or detached",
                     lease.reason.c_str());
  context_.beliefs.end(lease);
  // Of a cluster it is not known here which connection the lock relies on.
  retained_.ended(lease, is_cluster() || is_all_up());
}

// A lease that a caller has handed off is held, and renewed, before replicas let the next one in.
void Client::lease_moved(lock::Lease &lease) {
  if (lease.state.load() == lock::Lease::kHeld) given_up_.erase(lease.token);
}

void Client::send_on_messages(size_t node, std::span<const std::string_view> argv) {
  const CoreMemory::Pause pause;
  const Wire &wire = *wires_[node];
  CommandList commands;
  commands.emplace_back(argv);
  if (wire.is_up() && wire.messages_link != 0) {
    context_.network.send_up(wire.messages_link, std::move(commands));
  }
}

void Client::add(driver::LogLevel level, std::string_view text) noexcept {
  const CoreMemory::Pause pause;
  line_counts_[static_cast<size_t>(level)]++;
  context_.trace.say(context_.schedule.now(), "client %d logs: %.*s", slot_,
                     static_cast<int>(text.size()), text.data());
}

// ---- the shell ---------------------------------------------------------------------------------

void Client::settle() {
  // A local hand-off has erased its token from given_up_: it is held, and may be renewed.
  for (const std::string &token : given_up_) context_.checker.given_up(token);
  given_up_.clear();
  context_.beliefs.check();
  context_.checker.check_client(slot_);
  if (is_cluster()) check_cluster();
  check_retained();
  for (const auto &wire : wires_) {
    if (!is_waiting()) wire->silent_since = kNever;  // its silence is of no interest
    if (wire->connection.is_broken()) {
      check_drop(*wire);
      disconnect(*wire);
    }
    if (wire->is_up() && !wire->out.empty()) {
      context_.network.send_up(wire->link, std::exchange(wire->out, {}));
    }
    wire->out.clear();
  }
  for (auto &done : std::exchange(done_, {})) {
    if (done) context_.schedule.in(scheduling(), std::move(done));
  }
  if (is_closed_) return;
  for (size_t i = 0; i < wires_.size(); i++) connect(*wires_[i]);
  side_.settle();
  arm();
  tend_drain();
}

// The time until a thread runs that something has woken.
Nanos Client::scheduling() { return random_.between(0, kSchedulingLimit); }

void Client::hang_up(Wire &wire, Network::Ending ending) {
  for (uint64_t *link : {&wire.link, &wire.messages_link, &wire.sentinel_link}) {
    if (*link != 0) context_.network.close(*link, ending);
    *link = 0;
  }
  wire.early.clear();
  wire.slots.clear();
  wire.connection.end();
}

// The service gets on_disconnected() a moment later, as from another thread.
void Client::disconnect(Wire &wire) {
  if (!is_cluster()) retained_.disconnected();
  hang_up(wire, Network::Ending::kSoon);
  wire.is_end_due = true;
  later(scheduling(), [this, &wire] {
    wire.is_end_due = false;
    context_.trace.say(context_.schedule.now(), "client %d is disconnected from node %zu", slot_,
                       wire.node);
    note_pause(wire);
    call([&](lock::LockService &service, Nanos now) { service.on_disconnected(wire.node, now); });
  });
}

// ---- time --------------------------------------------------------------------------------------

void Client::arm() {
  const Nanos due = service_->next_due();
  if (due == kNever) return;
  // If an earlier timer event is pending, it arms the next one.
  const Nanos soonest = std::max(clock_.when(due), context_.schedule.now());
  if (soonest >= timer_at_) return;
  const Nanos at = soonest + random_.between(0, 50'000);
  timer_at_ = at;
  timer_number_++;
  context_.schedule.at(at, [this, number = timer_number_, alive = is_alive_] {
    if (*alive) on_time(number);
  });
}

void Client::on_time(uint64_t number) {
  if (number != timer_number_ || is_closed_) return;
  timer_at_ = kNever;
  if (is_paused()) {
    is_time_due_ = true;
    return;
  }
  if (service_->next_due() > now()) return arm();
  call([](lock::LockService &service, Nanos now) { service.on_timer(now); });
}

// ---- connections -------------------------------------------------------------------------------

void Client::Wire::received(uint64_t id, Messages messages) {
  if (!owns(id)) return;
  if (client.is_paused()) {
    client.inbox_.push_back({node, id, std::move(messages)});
    return;
  }
  client.take(*this, id, messages);
}

void Client::take(Wire &wire, uint64_t link, const Messages &messages) {
  if (wire.dialogue() != nullptr) return answer(wire, link, messages);
  if (!wire.is_up()) return;
  const bool is_for_messages = link != 0 && link == wire.messages_link;
  for (const Message &message : messages) {
    if (!wire.owns(link)) return;
    const bool is_reply = message.kind == Message::Kind::kReply;
    if (is_reply && !is_for_messages) {
      if (take_auth(wire, message.value)) continue;
      note_reply(wire, message.value);
    }
    if (is_for_messages || !is_reply) {
      take_message(wire, message);
      continue;
    }
    call([&](lock::LockService &service, Nanos now) {
      if (guide_ && message.value.text.starts_with("READONLY")) note_told(wire.at);
      if (is_cluster()) note_answer(wire, message.value);
      if (!is_resuming_) last_reply_at_ = context_.schedule.now();
      const CoreMemory::Pause pause;
      const ReplyView view(message.value);
      const CoreMemory::Scope scope;
      (void)wire.connection.take(service, view.get(), now);
    });
  }
}

// On a connection for messages replies, too, show that it is alive.
void Client::take_message(Wire &wire, const Message &message) {
  const ReplyView view(message.value);
  if (message.kind != Message::Kind::kReply) {
    call([&](lock::LockService &service, Nanos now) {
      const bool is_sharded = wire.connection.record().facts().is_sharded;
      note_push(service.channel(wire.node), is_sharded, message.value);
      wire.connection.take_message(service, view.get(), now);
    });
  }
  if (wire.messages_link == 0) return;
  call([&](lock::LockService &service, Nanos now) { service.on_messages_heard(wire.node, now); });
}

void Client::note_push(std::string_view channel, bool is_sharded, const Value &message) {
  const CoreMemory::Pause pause;
  const bool is_message = message.items.size() == 3;
  if (!is_message || (is_sharded && message.items.front().text == "message")) return;
  const auto push = protocol::parse_push(message.items[2].text);
  if (!push) return;
  const std::string token =
      protocol::make_token(channel.substr(channel.rfind(':') + 1), push->rid, push->is_recallable);
  if (push->kind == protocol::Push::Kind::kGrant) context_.checker.told(token);
  if (push->kind == protocol::Push::Kind::kRecall && !is_cluster() && is_all_up())
    retained_.recalled(token);
}

void Client::Wire::closed(uint64_t id) {
  if (!owns(id)) return;
  if (client.is_paused()) {
    closed_due.push_back(id);
    return;
  }
  client.note_end(*this);
}

void Client::pause(Nanos until) {
  paused_until_ = std::max(paused_until_, until);
  context_.schedule.at(paused_until_, [this, alive = is_alive_] {
    if (*alive) resume();
  });
}

// Handle the messages and the timers of the pause, in random order.
void Client::resume() {
  if (is_paused()) return;
  context_.trace.say(context_.schedule.now(), "client %d goes on", slot_);
  retained_.resumed(now());
  const bool is_time_first = random_.chance(500);
  const auto run_time = [&] {
    if (!std::exchange(is_time_due_, false) || is_closed_) return;
    call([](lock::LockService &service, Nanos now) { service.on_timer(now); });
  };
  if (is_time_first) run_time();
  is_resuming_ = true;  // replies of the pause are too old to show a server's clock
  for (const Arrival &arrival : std::exchange(inbox_, {})) {
    Wire &wire = *wires_[arrival.node];
    if (wire.owns(arrival.link)) take(wire, arrival.link, arrival.messages);
  }
  is_resuming_ = false;
  for (const auto &wire : wires_) {
    for (const uint64_t link : std::exchange(wire->closed_due, {})) {
      if (wire->owns(link)) note_end(*wire);
    }
  }
  run_time();
}

void Client::forget_connections(Network::Ending ending) {
  if (guide_) guide_->hang_up(ending);
  side_.hang_up(ending);
  for (const auto &wire : wires_) hang_up(*wire, ending);
}

void Client::cut_off(size_t node, bool is_up, bool is_down, Nanos until) {
  Wire &wire = *wires_[node];
  wire.blocked_until = std::max(wire.blocked_until, until);
  for (const uint64_t link : {wire.link, wire.messages_link}) {
    if (is_up) context_.network.stall(link, true, until);
    if (is_down) context_.network.stall(link, false, until);
  }
}

void Client::heal() {
  for (const auto &wire : wires_) wire->blocked_until = 0;
  parted_.clear();
  if (guide_) guide_->heal();
}

}  // namespace redlatch::sim
