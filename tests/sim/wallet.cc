// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "wallet.h"

#include <algorithm>
#include <string>

#include "client.h"
#include "memory.h"
#include "passwords.h"

namespace redlatch::sim {

namespace {

constexpr Nanos kNew = kSecond;  // so long the application is not asked for others

}  // namespace

Wallet::Wallet(Client &client, Context &context, uint64_t life)
    : client_(client),
      context_(context),
      random_(context.plan.seed, 41'000 + static_cast<uint64_t>(client.slot()) + life * 1000) {}

// ---- the application ---------------------------------------------------------------------------

void Wallet::begin() {
  if (context_.passwords == nullptr) return;
  is_watching_ = random_.chance(750);
  is_telling_ = !is_watching_ || random_.chance(500);
  // Otherwise it would not hear of an end.
  if (is_watching_ && random_.chance(300)) valid_for_ = random_.between(4'000, 30'000) * kMs;
  if (is_watching_) credentials_.begin_watch();
  if (is_telling_) set();
}

// Before the servers accept it, while they accept both, or afterwards.
void Wallet::hear(Nanos in) {
  if (!is_telling_) return;
  const int64_t how = random_.between(0, 2);
  const Nanos late = is_watching_ ? 4'000 * kMs : 1'000 * kMs;
  const Nanos delay = how == 0   ? random_.between(0, 20 * kMs)
                      : how == 1 ? random_.between(0, in)
                                 : in + random_.between(0, late);
  client_.later(delay, [this] { set(); });
}

void Wallet::ask() {
  if (!credentials_.asks(client_.now())) return;
  credentials_.on_asked();
  is_asked_ = true;
  needed_since_ = kNever;
  const bool is_slow = random_.chance(150);
  const Nanos delay = random_.between(1, is_slow ? 3'000 : 60) * kMs;
  client_.later(delay, [this] { answer(); });
}

void Wallet::answer() {
  is_asked_ = false;
  has_failed_ = !has_failed_ && random_.chance(200);
  if (!has_failed_) return set();
  context_.trace.say(context_.schedule.now(), "the application of client %d has no password",
                     client_.slot());
  {
    const CoreMemory::Scope scope;
    credentials_.fail("the vault is sealed", client_.now());
  }
  changed();
}

void Wallet::set() {
  mark();
  const std::string &password = context_.passwords->newest();
  {
    const CoreMemory::Scope scope;
    credentials_.set("", password, valid_for_, client_.now());
  }
  given_at_ = client_.now();
  ends_at_ = after(given_at_, valid_for_);
  needed_since_ = kNever;
  mark();
  context_.trace.say(context_.schedule.now(), "the application of client %d gives %s",
                     client_.slot(), password.c_str());
  client_.authenticate();
  changed();
}

// Who waits looks again.
void Wallet::changed() {
  check();
  client_.later(client_.scheduling(), [this] { client_.wake_tries(); });
  arm();
}

void Wallet::arm() {
  const Nanos due = credentials_.next_due();
  timer_++;
  if (due == kNever) return;
  const Nanos left = std::max<Nanos>(client_.when(due) - context_.schedule.now(), 0);
  client_.later(left, [this, number = timer_] {
    if (number != timer_) return;
    ask();
    arm();
  });
}

// ---- connections -------------------------------------------------------------------------------

driver::Credentials::Given Wallet::give(uint64_t than, Nanos limit) {
  const CoreMemory::Scope scope;
  auto given = credentials_.give(than, limit, client_.now());
  if (context_.passwords == nullptr) return given;
  const CoreMemory::Pause pause;
  ask();
  check();
  arm();
  if (given.what != driver::Credentials::Given::What::kWait) return given;
  const Nanos left = std::max<Nanos>(client_.when(given.until) - context_.schedule.now(), kMs);
  client_.later(left, [this] { client_.wake_tries(); });
  return given;
}

bool Wallet::refused(uint64_t number) {
  mark();
  const Nanos now = client_.now();
  credentials_.on_refused(number);
  if (number == login().number) {
    refused_ = number;
    needed_since_ = std::min(needed_since_, context_.schedule.now());
  }
  ask();
  mark();
  check();
  arm();
  return credentials_.is_worth_waiting(number, now);
}

bool Wallet::may_replace(uint64_t number) const {
  return number != login().number || (is_watching_ && client_.now() - given_at_ >= kNew);
}

// ---- rules -------------------------------------------------------------------------------------

// Without a watch what was refused is tried again: there will be no others.
bool Wallet::is_valid() const {
  if (login().number == 0 || client_.now() >= ends_at_) return false;
  if (is_watching_ && refused_ == login().number) return false;
  return context_.passwords->is_accepted(login().password);
}

void Wallet::mark() {
  if (!is_valid()) last_invalid_ = context_.schedule.now();
}

Nanos Wallet::last_invalid() {
  mark();
  return last_invalid_;
}

void Wallet::check() {
  if (const char *broken = credentials_.check()) {
    context_.verdict.broken("credentials are legal", broken);
  }
}

// Rule: the application is asked again, although it has failed, within a second after the last
// answer, when a server has refused what it gave.
void Wallet::watch() {
  const bool is_needed = is_watching_ && refused_ != 0 && refused_ == login().number;
  const bool is_due = is_needed && !is_asked_ && !client_.is_paused();
  const Nanos now = context_.schedule.now();
  needed_since_ = is_due ? std::min(needed_since_, now) : kNever;
  if (!is_due || now - needed_since_ <= kNew + kSecond) return;
  context_.verdict.broken("the application is asked again",
                          "client " + std::to_string(client_.slot()));
}

// ---- LoginTry ----------------------------------------------------------------------------------

LoginTry::LoginTry(Client &client, Context &context, driver::LoginAttempt &attempt)
    : client_(client), context_(context), attempt_(attempt) {}

LoginTry::~LoginTry() {
  if (is_waiting_) client_.wallet().end_wait();
}

void LoginTry::note_dialled(const Outcome &outcome) {
  if (outcome.status != Status::kDenied) return;
  denied_count_++;
  was_replaceable_ = client_.wallet().may_replace(login());
}

// Rule: if the first password that an attempt tries is refused, and was given some time ago, the
// attempt waits for others, and callers are not told of a refusal.
LoginTry::Stage LoginTry::go_on() {
  using What = driver::Credentials::Given::What;
  Wallet &wallet = client_.wallet();
  while (true) {
    if (const char *broken = attempt_.check()) {
      context_.verdict.broken("an attempt with passwords is legal", broken);
    }
    switch (attempt_.stage()) {
      case Stage::kReading:
        attempt_.on_read({}, client_.now());
        break;
      case Stage::kWaiting: {
        if (!is_waiting_) wallet.begin_wait();
        is_waiting_ = true;
        const auto given = wallet.give(login(), attempt_.limit());
        if (given.what == What::kWait) return Stage::kWaiting;
        is_waiting_ = false;
        wallet.end_wait();
        given.what == What::kLogin ? attempt_.on_given(wallet.login())
                                   : attempt_.on_missing(given.why);
        break;
      }
      case Stage::kDenied:
        attempt_.on_hope(wallet.refused(login()));
        break;
      case Stage::kOver:
        if (attempt_.outcome().status == Status::kDenied && denied_count_ == 1 &&
            was_replaceable_ && login() != 0) {
          context_.verdict.broken("an old password that is refused is replaced",
                                  "client " + std::to_string(client_.slot()));
        }
        return Stage::kOver;
      default:
        return attempt_.stage();
    }
  }
}

}  // namespace redlatch::sim
