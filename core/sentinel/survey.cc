// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "sentinel/survey.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/limits.h"
#include "base/text.h"

namespace redlatch::sentinel {

namespace {

// Replies to the questions, by how many are still to come.
constexpr size_t kHelloAwaited = 4;
constexpr size_t kAddressAwaited = 3;
constexpr size_t kOthersAwaited = 2;
constexpr size_t kSizeIsNext = 1;
// With two, the loss of one leaves no majority.
constexpr size_t kFewest = 3;

std::string join(const std::string &list, const std::string &one) {
  return list.empty() ? one : list + "; " + one;
}

std::string sentinels(size_t count) {
  return std::to_string(count) + (count == 1 ? " sentinel" : " sentinels");
}

}  // namespace

Survey::Survey(const Settings &settings, const std::vector<HostPort> &others, Nanos now,
               Nanos limit)
    : settings_(settings), end_(limit) {
  for (const HostPort &one : settings_.sentinel.addresses) add(one, "");
  for (const HostPort &one : others) add(one, "");
  assert(!members_.empty());
  asked_ = settings_.of_sentinel(members_.front().address);
  limit_ = now + std::max<Nanos>((end_ - now) / static_cast<Nanos>(members_.size()), 0);
}

// A sentinel may send any list: it has an end.
void Survey::add(const HostPort &address, const std::string &id) {
  const auto found = std::find_if(members_.begin(), members_.end(),
                                  [&](const Member &one) { return one.address == address; });
  if (found != members_.end()) {
    if (found->id.empty()) found->id = id;
    return;
  }
  if (members_.size() == 2 * kMaxSentinels) return;
  Member member;
  member.address = address;
  member.id = id;
  members_.push_back(std::move(member));
}

// Each sentinel has its share of the time that is left.
void Survey::next(Nanos now) {
  awaited_count_ = 0;
  turn_++;
  if (is_over()) return merge();
  asked_ = settings_.of_sentinel(members_[turn_].address);
  const auto shares = static_cast<Nanos>(members_.size() - turn_);
  limit_ = now + std::max<Nanos>((end_ - now) / shares, 0);
}

void Survey::on_dialled(const Send &send) {
  assert(!is_over());
  awaited_count_ = kHelloAwaited + 1;
  const std::string &name = settings_.sentinel.primary_name;
  say_hello(asked_, send);
  ask(kAddress, name, send);
  ask(kOthers, name, send);
  ask(kPrimary, name, send);
  ask_id(send);
}

void Survey::on_failed(const Outcome &why, Nanos now) {
  assert(!is_over());
  members_[turn_].why = why;
  next(now);
}

void Survey::on_reply(const Reply &reply, Nanos now) {
  if (awaited_count_ == 0) return;  // the sentinel sent more than it was asked for
  awaited_count_--;
  Member *mine = &members_[turn_];
  if (awaited_count_ == kHelloAwaited) {
    mine->why = check_hello(reply, asked_);
    if (!mine->why.ok()) next(now);
    return;
  }
  if (awaited_count_ == kAddressAwaited) {
    const std::string &name = settings_.sentinel.primary_name;
    mine->why_no_primary = read_address(reply, asked_, name, mine->primary);
  } else if (awaited_count_ == kOthersAwaited) {
    for (const auto &[address, id] : read_members(reply)) add(address, id);
  } else if (awaited_count_ == kSizeIsNext) {
    mine->epoch = read_epoch(reply);
    mine->size = read_group_size(reply);
  } else {
    const std::string id = read_id(reply);
    if (!id.empty()) mine->id = id;
    next(now);
  }
}

// A URL may name sentinels by their hosts, and sentinels name one another by their IP addresses:
// one sentinel is then asked twice, and counts once.
void Survey::merge() {
  for (Member &one : members_) {
    one.is_same = std::any_of(members_.begin(), members_.end(), [&one](const Member &other) {
      if (&other == &one || other.is_same || one.id.empty() || other.id != one.id) return false;
      // The address that answers is kept, or else the first one.
      return other.answers() && (!one.answers() || &other < &one);
    });
  }
}

// ---- judging -----------------------------------------------------------------------------------

std::vector<Finding> Survey::findings() const {
  assert(is_over());
  return {answering(), primary(), quorum()};
}

size_t Survey::count() const {
  return static_cast<size_t>(std::count_if(members_.begin(), members_.end(),
                                           [](const Member &one) { return !one.is_same; }));
}

size_t Survey::answering_count() const {
  return static_cast<size_t>(std::count_if(members_.begin(), members_.end(), [](const Member &one) {
    return !one.is_same && one.answers();
  }));
}

std::string Survey::list_failures() const {
  std::string list;
  for (const Member &one : members_) {
    if (!one.is_same && !one.answers()) list = join(list, one.why.message);
  }
  return list;
}

Finding Survey::answering() const {
  const size_t all = count();
  const size_t there = answering_count();
  Finding finding{
      "sentinels", FindingLevel::kOk,
      std::to_string(there) + " of " + sentinels(all) + (all == 1 ? " answers" : " answer"), ""};
  if (there < all) {
    finding.level = there == 0 ? FindingLevel::kFail : FindingLevel::kWarn;
    finding.seen += ": " + list_failures();
    finding.advice =
        "start it, or correct its address or its password; if it is gone for good, have the others "
        "forget it by SENTINEL RESET";
  } else if (all < kFewest) {
    finding.level = FindingLevel::kWarn;
    finding.seen += ": without one of them there is no failover";
    finding.advice = "run at least 3 sentinels, on hosts that do not fail together";
  }
  return finding;
}

std::string Survey::list_opinions() const {
  std::string list;
  for (const Member &one : members_) {
    if (one.is_same || !one.answers()) continue;
    const bool has_named = one.why_no_primary.ok();
    list = join(list, has_named
                          ? one.address.text() + " names " + one.primary.text() +
                                (one.epoch < 0 ? "" : " in the epoch " + std::to_string(one.epoch))
                          : one.why_no_primary.message);
  }
  return list;
}

Finding Survey::primary() const {
  Finding finding{"sentinel-primary", FindingLevel::kUnknown, "no sentinel answers", ""};
  const Member *first = nullptr;
  bool agree = true;
  for (const Member &one : members_) {
    if (one.is_same || !one.answers()) continue;
    if (first == nullptr) first = &one;
    agree = agree && one.why_no_primary.ok() && one.primary == first->primary;
  }
  if (first == nullptr) return finding;
  if (agree) {
    finding.level = FindingLevel::kOk;
    finding.seen = "all that answer name " + first->primary.text();
  } else {
    finding.level = FindingLevel::kWarn;
    finding.seen = "the sentinels do not agree: " + list_opinions();
    finding.advice =
        "wait, if a failover is under way; else connect the sentinels, or correct their settings";
  }
  return finding;
}

// How many sentinels there are, says the sentinel that knows most of them.
size_t Survey::group_count() const {
  int64_t most = 0;
  for (const Member &one : members_) most = std::max(most, one.size.other_count + 1);
  return static_cast<size_t>(most);
}

Finding Survey::quorum() const {
  Finding finding{"sentinel-quorum", FindingLevel::kUnknown, "no sentinel says its quorum", ""};
  const Member *first = nullptr;
  const Member *other = nullptr;
  for (const Member &one : members_) {
    if (one.is_same || !one.answers() || !one.size.is_known()) continue;
    if (first == nullptr) first = &one;
    if (!(one.size == first->size)) other = &one;
  }
  if (first == nullptr) return finding;
  const auto shown = [](const Member &one) {
    return std::to_string(one.size.quorum) + " of " +
           sentinels(static_cast<size_t>(one.size.other_count + 1));
  };
  const auto needed = static_cast<size_t>(first->size.quorum);
  const size_t all = group_count();
  finding.level = FindingLevel::kWarn;
  finding.seen = "the quorum is " + shown(*first);
  if (other != nullptr) {
    finding.seen +=
        " at " + first->address.text() + ", " + shown(*other) + " at " + other->address.text();
    finding.advice =
        "set the same quorum on all, and have them forget sentinels that are gone by SENTINEL "
        "RESET";
  } else if (needed > all || (all >= kFewest && needed == all)) {
    finding.seen +=
        needed > all ? ": there is no failover" : ": without one of them there is no failover";
    finding.advice = "set the quorum to " + std::to_string(all / 2 + 1) + " by SENTINEL SET";
  } else if (answering_count() < std::max(needed, all / 2 + 1)) {
    finding.seen += ", and " + std::to_string(answering_count()) + " answer: there is no failover";
    finding.advice = "start the sentinels that do not answer";
  } else {
    finding.level = FindingLevel::kOk;
  }
  return finding;
}

}  // namespace redlatch::sentinel
