// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "sentinel/discovery.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/dial_failure.h"
#include "base/text.h"

namespace redlatch::sentinel {

namespace {

constexpr Nanos kOthersLimit = 100 * kMs;
// Sentinels inform one another every 2 s.
constexpr Nanos kLeftFor = 10'000 * kMs;
// Replies to the questions, by how many are still to come.
constexpr size_t kHelloIsNext = 3;
constexpr size_t kAddressIsNext = 2;
constexpr size_t kOthersAreNext = 1;

bool contains(const std::vector<HostPort> &list, const HostPort &one) {
  return std::find(list.begin(), list.end(), one) != list.end();
}

}  // namespace

void note_switch(Knowledge &known, const Opinion &opinion, int64_t epoch, Nanos now) {
  known.first = opinion.sentinel;
  known.left = known.primary;
  known.left_epoch = epoch;
  known.left_until = after(now, kLeftFor);
}

Discovery::Discovery(const Settings &settings, Knowledge known, Nanos now)
    : settings_(settings),
      known_(std::move(known)),
      epoch_before_(known_.epoch),
      end_(after(now, settings.connect_timeout)) {
  const std::vector<HostPort> &given = settings_.sentinel.addresses;
  for (const HostPort &one : given) consider(one);
  for (const HostPort &one : known_.others) consider(one);
  untried_.clear();
  for (const bool was_silent : {false, true}) {
    for (const HostPort &one : listed_) {
      if (contains(known_.silent, one) == was_silent) untried_.push_back(one);
    }
  }
  const auto first = std::find(untried_.begin(), untried_.end(), known_.first);
  if (first != untried_.end()) std::rotate(untried_.begin(), first, first + 1);
  total_ = given.size();
  dial_next(now);
}

void Discovery::consider(const HostPort &sentinel) {
  if (contains(listed_, sentinel) || listed_.size() == 2 * kMaxSentinels) return;
  listed_.push_back(sentinel);
  untried_.push_back(sentinel);
}

// ---- asking ------------------------------------------------------------------------------------

// Each sentinel has its share of the time that is left, and so has the server.
void Discovery::dial_next(Nanos now) {
  assert(!untried_.empty());
  const HostPort sentinel = untried_.front();
  stage_ = Stage::kDialling;
  asked_ = settings_.of_sentinel(sentinel);
  const auto shares = static_cast<Nanos>(untried_.size() + 1);
  untried_.erase(untried_.begin());
  limit_ = now + std::max<Nanos>((end_ - now) / shares, 0);
  if (refuted_.empty()) limit_ = std::min(limit_, others_until_);
}

void Discovery::on_dialled(const Send &send) {
  assert(stage_ == Stage::kDialling);
  stage_ = Stage::kAsking;
  answer_ = {};
  answer_.sentinel = {asked_.host, asked_.port};
  awaited_count_ = kHelloIsNext + 1;
  const std::string &name = settings_.sentinel.primary_name;
  say_hello(asked_, send);
  ask(kAddress, name, send);
  ask(kOthers, name, send);
  ask(kPrimary, name, send);
}

void Discovery::on_failed(const Outcome &why, Nanos now) {
  assert(stage_ == Stage::kDialling || stage_ == Stage::kAsking);
  awaited_count_ = 0;
  const HostPort sentinel{asked_.host, asked_.port};
  if (!contains(known_.silent, sentinel)) known_.silent.push_back(sentinel);
  failures_.push_back({sentinel, why, false});
  ask_next(now);
}

void Discovery::on_reply(const Reply &reply, Nanos now) {
  if (awaited_count_ == 0) return;  // the sentinel sent more than it was asked for
  awaited_count_--;
  Outcome why;
  if (awaited_count_ == kHelloIsNext) why = check_hello(reply, asked_);
  const bool is_address = awaited_count_ == kAddressIsNext;
  if (is_address) {
    why = read_address(reply, asked_, settings_.sentinel.primary_name, answer_.primary);
  }
  if (!why.ok()) {
    awaited_count_ = 0;
    failures_.push_back(
        {answer_.sentinel, std::move(why), is_address && reply.kind == Reply::Kind::kNil});
    return ask_next(now);
  }
  if (awaited_count_ == kOthersAreNext) note_others(read_others(reply));
  if (awaited_count_ > 0) return;
  answer_.epoch = read_epoch(reply);
  std::erase(known_.silent, answer_.sentinel);
  if (is_left(answer_)) {
    note_left(now);
  } else {
    opinions_.push_back(answer_);
    others_until_ = std::min(others_until_, now + kOthersLimit);
  }
  ask_next(now);
}

// The lists of all that answer are joined, because none contains the sentinel that sends it.
void Discovery::note_others(std::vector<HostPort> others) {
  if (opinions_.empty()) known_.others.clear();
  total_ = std::max(total_, others.size() + 1);
  others.push_back(answer_.sentinel);
  for (const HostPort &one : others) {
    consider(one);
    const bool is_known = contains(settings_.sentinel.addresses, one) ||
                          contains(known_.others, one) || !contains(listed_, one);
    if (!is_known) known_.others.push_back(one);
  }
}

bool Discovery::is_left(const Opinion &opinion) const {
  return opinion.primary == known_.left && opinion.epoch <= known_.left_epoch;
}

// The primary that was left is believed once more than half of the sentinels name it again. Those
// that are not yet informed name it still. So for a while the sentinel that reported the change has
// to be among them, which says that the promotion was aborted.
void Discovery::note_left(Nanos now) {
  returned_.push_back(answer_);
  const bool is_revoked =
      now >= known_.left_until ||
      std::any_of(returned_.begin(), returned_.end(),
                  [this](const Opinion &one) { return one.sentinel == known_.first; });
  if (is_revoked && returned_.size() * 2 > total_) {
    opinions_.insert(opinions_.end(), returned_.begin(), returned_.end());
    returned_.clear();
  }
}

void Discovery::ask_next(Nanos now) {
  // One that was silent last time is not waited for once there is an answer.
  if (!opinions_.empty() && refuted_.empty()) {
    std::erase_if(untried_, [this](const HostPort &one) { return contains(known_.silent, one); });
  }
  if (is_enough(now)) return decide();
  dial_next(now);
}

// ---- deciding ----------------------------------------------------------------------------------

bool Discovery::is_enough(Nanos now) const {
  if (untried_.empty() || now >= end_) return true;
  const Opinion *found = best();
  if (found == nullptr || is_refuted(found->primary)) return false;
  return is_of_most(*found) || (refuted_.empty() && now >= others_until_);
}

const Opinion *Discovery::best() const {
  const auto found =
      std::max_element(opinions_.begin(), opinions_.end(),
                       [](const Opinion &a, const Opinion &b) { return a.epoch < b.epoch; });
  return found == opinions_.end() ? nullptr : &*found;
}

size_t Discovery::count_votes(const Opinion &best) const {
  return static_cast<size_t>(
      std::count_if(opinions_.begin(), opinions_.end(), [&best](const Opinion &one) {
        return one.primary == best.primary && one.epoch == best.epoch;
      }));
}

bool Discovery::is_of_most(const Opinion &best) const { return count_votes(best) * 2 > total_; }

bool Discovery::is_refuted(const HostPort &primary) const { return contains(refuted_, primary); }

void Discovery::decide() {
  const Opinion *found = best();
  if (found == nullptr) return give_up_unanswered();
  const auto other = std::find_if(opinions_.begin(), opinions_.end(), [found](const Opinion &one) {
    return one.epoch == found->epoch && one.primary != found->primary;
  });
  if (other != opinions_.end() && !is_of_most(*found)) {
    if (is_of_most(*other)) return name(*other);
    return give_up(Status::kUnavailable,
                   "the sentinels disagree: " + found->sentinel.text() + " names " +
                       found->primary.text() + ", " + other->sentinel.text() + " names " +
                       other->primary.text() + ", " +
                       (found->epoch < 0 ? "and neither says in which epoch"
                                         : "both in the epoch " + std::to_string(found->epoch)));
  }
  const bool is_old = found->epoch >= 0 && found->epoch < epoch_before_;
  if (is_old && !is_of_most(*found)) {
    return give_up(Status::kUnavailable,
                   "the sentinels that answer are behind: " + found->sentinel.text() + " names " +
                       found->primary.text() + " in the epoch " + std::to_string(found->epoch) +
                       ", and the epoch " + std::to_string(epoch_before_) + " was seen");
  }
  if (is_refuted(found->primary)) {
    return end(failure(refutation_.status, refutation_.message + " (named by sentinel " +
                                               found->sentinel.text() + ")"));
  }
  name(*found);
}

void Discovery::name(const Opinion &best) {
  opinion_ = best;
  stage_ = Stage::kNamed;
  limit_ = end_;
}

void Discovery::on_confirmed() {
  assert(stage_ == Stage::kNamed);
  // Only more than half of the sentinels can name an epoch below one that was seen.
  if (opinion_.epoch >= 0) known_.epoch = opinion_.epoch;
  known_.primary = opinion_.primary;
  if (known_.left == known_.primary) known_.left = {};
  end({});
}

void Discovery::on_refuted(const Outcome &why, Nanos now) {
  assert(stage_ == Stage::kNamed);
  if (!may_pass(why.status)) return end(why);
  refuted_.push_back(opinion_.primary);
  refutation_ = why;
  ask_next(now);
}

// ---- failures ----------------------------------------------------------------------------------

void Discovery::end(Outcome outcome) {
  stage_ = Stage::kOver;
  awaited_count_ = 0;
  outcome_ = std::move(outcome);
}

void Discovery::give_up(Status status, const std::string &what) {
  const std::string more = list_failures();
  end(failure(status, quoted(settings_.sentinel.primary_name, kMaxPrimaryNameBytes) + ": " + what +
                          (more.empty() ? "" : "; ") + more));
}

std::string Discovery::list_failures() const {
  std::string ignorant;
  std::string list;
  for (const Opinion &one : returned_) {
    list += (list.empty() ? "" : "; ") + one.sentinel.text() + " still names " +
            one.primary.text() + ", which is no longer the primary";
  }
  for (const Failure &one : failures_) {
    std::string &into = one.is_name_unknown ? ignorant : list;
    const std::string what = one.is_name_unknown ? one.sentinel.text() : one.why.message;
    into += (into.empty() ? "" : one.is_name_unknown ? ", " : "; ") + what;
  }
  std::string rest;
  for (const HostPort &one : untried_) rest += (rest.empty() ? "" : ", ") + one.text();
  if (!rest.empty()) list += (list.empty() ? "" : "; ") + ("no time was left for " + rest);
  if (ignorant.empty()) return list;
  return "not known to " + ignorant + (list.empty() ? "" : "; " + list);
}

// No sentinel named an address. A reason that a retry cannot change is final if most of those that
// the URL names say so.
void Discovery::give_up_unanswered() {
  size_t denied_count = 0;
  size_t final_count = 0;
  Status status = Status::kUnavailable;
  for (const Failure &one : failures_) {
    denied_count += one.why.status == Status::kDenied ? 1 : 0;
    if (may_pass(one.why.status)) continue;
    final_count++;
    status = one.why.status;
  }
  if (denied_count > 0) status = Status::kDenied;
  const bool is_final = final_count * 2 > settings_.sentinel.addresses.size();
  give_up(is_final ? status : Status::kUnavailable, "no sentinel names the primary");
}

const char *Discovery::check() const {
  if (awaited_count_ > 0 && stage_ != Stage::kAsking) return "replies are awaited while asking";
  if (stage_ == Stage::kAsking && awaited_count_ == 0) return "a sentinel that is asked answers";
  if (stage_ != Stage::kOver && !outcome_.ok()) return "a failure ends the discovery";
  if (limit_ > end_) return "nothing lasts longer than the attempt";
  if (stage_ == Stage::kNamed && is_refuted(opinion_.primary)) {
    return "a server that is no primary is not tried again";
  }
  if (stage_ == Stage::kNamed && opinions_.empty()) return "a sentinel has named the server";
  return nullptr;
}

}  // namespace redlatch::sentinel
