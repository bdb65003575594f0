// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "jobs.h"

#include "base/limits.h"
#include "protocol/answer.h"

namespace redlatch::sim {

namespace {

constexpr int64_t kRun = 1, kSucceeded = 2, kTriesUsed = 3;
constexpr int64_t kUnnoted = 4;
constexpr size_t kNoteKeys = 6;
constexpr int64_t kRateSlack = 100;  // a clock's rate is wrong by less than a part of so many

}  // namespace

void Jobs::after(protocol::Script script, std::string_view lock, size_t key_count, Argv args,
                 const Value &reply, int64_t now_ms) {
  if (reply.items.size() < 3) return;
  const std::string name(lock);
  if (script == protocol::Script::kOnceBegin) {
    return check_begin({name, std::string(args[2])}, args, reply);
  }
  const bool has_note = script == protocol::Script::kRelease && key_count == kNoteKeys;
  const bool is_noted = reply.items[0].integer >= 1 && (reply.items[2].integer & kUnnoted) == 0;
  if (has_note && is_noted) note(name, args, now_ms);
}

// Rule: a run begins once in a period, unless those before it have failed; then at most as often as
// the caller allows. A caller that has waited for a run that succeeded begins none. A repetition is
// recognized by its token and hand-offs.
void Jobs::check_begin(const Name &name, Argv args, const Value &reply) {
  const int64_t result = reply.items[0].integer, now_ms = reply.items[1].integer;
  if (result < kRun || result > kTriesUsed) return;
  const std::string run = std::string(args[0]).append(args[1]);
  const std::string how = name.first + " '" + name.second + "', " + run;
  Period &period = periods_[name];
  const bool is_repeated = result == kRun && period.last == run && !period.is_done;
  if (is_repeated) return;
  const bool has_waited = period.is_done && period.done_ms > now_ms - integer_of(args[5]);
  if (period.ends_ms <= now_ms && !(has_waited && result == kSucceeded)) {
    if (has_waited) verdict_.broken("who has waited for a success begins no run", how);
    period = {now_ms + integer_of(args[3]), 0, {}, false, 0};
  }
  // A success after the end, which only callers see that have waited, may have lost its period.
  const bool is_over = result == kSucceeded && period.ends_ms <= now_ms;
  if (!is_over && reply.items[2].integer != period.ends_ms) {
    verdict_.broken("a period ends when its first run said", how);
  }
  if (result == kSucceeded && !period.is_done) {
    verdict_.broken("who is skipped is skipped for a success", how);
  }
  if (result == kTriesUsed && period.tries < integer_of(args[4])) {
    verdict_.broken("every failure but the last leaves a try", how);
  }
  if (result != kRun) return;
  if (period.is_done) verdict_.broken("no run begins in a period after a success", how);
  period.last = run;
  if (++period.tries > integer_of(args[4])) verdict_.broken("tries are counted", how);
}

// Rule: what is noted is of the run that was begun last, and each value is stored once.
void Jobs::note(const std::string &lock, Argv args, int64_t now_ms) {
  if (args[2] == "o") {
    Period &period = periods_[{lock, std::string(args[3])}];
    const std::string run = std::string(args[0]).append(args[4]);
    if (period.last != run) return verdict_.broken("a success is that of the last run", lock);
    period.is_done = true;
    period.done_ms = now_ms;
    return;
  }
  const int64_t fence = integer_of(args[3].substr(1));
  const Nanos now = schedule_.now();
  const int64_t end = integer_of(args[4]);
  const int64_t ttl_ms = end > kMaxTtlMs ? end - now_ms : end;
  const bool is_new = values_[lock]
                          .try_emplace(fence, Stored{std::string(args[3]), now, now + ttl_ms * kMs})
                          .second;
  if (!is_new) verdict_.broken("a value is stored once", lock + ", fence " + std::to_string(fence));
  last_values_[lock] = fence;
}

void Jobs::forget() {
  periods_.clear();
  last_values_.clear();
}

// Rules: a caller gets what was stored, and not after its end; a failure only if it had begun
// before.
void Jobs::landed(std::string_view lock, const protocol::FlightValue &value, Nanos began) {
  const std::string how = std::string(lock) + ", fence " + std::to_string(value.fence);
  const auto &all = values_[std::string(lock)];
  const auto found = all.find(value.fence);
  if (found == all.end() || found->second.text != flight_text(value, value.fence)) {
    return verdict_.broken("a caller gets a value that was stored", how);
  }
  const Stored &stored = found->second;
  if (value.is_failure) {
    if (began > stored.at) verdict_.broken("a failure is not remembered", how);
    return;
  }
  const Nanos slack = (stored.until - stored.at) / kRateSlack + kMs;
  if (began > stored.until + slack) verdict_.broken("a value is not older than its ttl", how);
}

// Rule: one caller computes. As it has the lock, no other has stored a value since it has read.
void Jobs::computes(std::string_view lock) {
  const auto last = last_values_.find(std::string(lock));
  if (last == last_values_.end()) return;
  const Stored &stored = values_[last->first].at(last->second);
  const Nanos slack = (stored.until - stored.at) / kRateSlack + kMs;
  const bool is_value = stored.text.front() == 'v';
  if (is_value && schedule_.now() + slack < stored.until) {
    verdict_.broken("nobody computes a value that is there",
                    std::string(lock) + ", fence " + std::to_string(last->second));
  }
}

}  // namespace redlatch::sim
