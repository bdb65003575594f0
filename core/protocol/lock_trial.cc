// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
#include "protocol/lock_trial.h"

#include <cassert>

#include "base/limits.h"
#include "protocol/token.h"

namespace redlatch::protocol {

namespace {

// Longer than the trial, and soon over if its connection ends in the middle.
constexpr int64_t kTtlMs = 10'000;

std::string trial_name(std::string_view tag, const std::string &token) {
  std::string name = "redlatch-check-";
  if (!tag.empty()) name.append("{").append(tag).append("}");
  return name + token;
}

}  // namespace

LockTrial::LockTrial(std::string_view name_space, std::string_view cid, uint64_t rid,
                     std::string_view tag)
    : rid_(rid),
      holder_(make_token(cid, rid - 1)),
      waiter_(make_token(cid, rid)),
      member_(make_member(waiter_, Mode::kWrite, kProvisionalMs, kTtlMs)),
      keys_(name_space, trial_name(tag, waiter_), Format::kString),
      pattern_(key_pattern(name_space, trial_name(tag.empty() ? "" : "*", waiter_))) {
  assert(rid > 0 && "the holder has the number before it");
}

void LockTrial::ask(const ServerFeatures &features, const Send &send) const {
  for (size_t i = 0; i < kStepCount; i++) {
    Command command;
    write(command, static_cast<Step>(i), features);
    send(command);
  }
}

// As texts, because the server may know no script by its digest. After a text it does: the last one
// shows that the user and the server allow EVALSHA, which callers use.
void LockTrial::write(Command &out, Step step, const ServerFeatures &features) const {
  constexpr auto kText = EvalMode::kText;
  const AcquireCall take{Mode::kWrite, {holder_, ""}, kTtlMs, "", ""};
  const AcquireCall queue{Mode::kWrite, {waiter_, ""}, kTtlMs, member_, ""};
  switch (step) {
    case Step::kTake:
      return acquire(out, features, kText, keys_, take);
    case Step::kExtend:
      return extend(out, features, kText, keys_, holder_, kTtlMs, false, nullptr);
    case Step::kQueue:
    case Step::kAskAgain:
      return acquire(out, features, kText, keys_, queue);
    case Step::kInspect:
      return inspect(out, features, kText, keys_, mark_key_, candidates_key_);
    case Step::kHandOver:
      return release(out, features, kText, keys_, {holder_, ""}, {}, 1);
    case Step::kGiveBack:
      return release(out, features, EvalMode::kDigest, keys_, {waiter_, ""}, {}, 1);
    case Step::kList:
      return list(out, "0", pattern_);
    case Step::kRemove:
      // The fence would stay for an hour. No other lock has this name, now or later.
      out.add("DEL").add(keys_.lock).add(keys_.queue).add(keys_.fence);
      return void(out.add(keys_.readers).add(keys_.info).add(keys_.turn));
  }
}

std::string LockTrial::of_grant(const Reply &reply, bool is_wanted, Refusal &refusal) {
  AcquireAnswer answer;
  refusal = decode(reply, answer);
  if (refusal) return refusal.message;
  if (answer.is_granted == is_wanted) return "";
  return is_wanted ? "a free lock was not granted" : "a lock had two holders";
}

std::string LockTrial::of_count(const Reply &reply, int64_t wanted, Refusal &refusal) {
  CountAnswer answer;
  refusal = decode(reply, answer);
  if (refusal) return refusal.message;
  if (answer.result == wanted) return "";
  return "answer " + std::to_string(answer.result) + " in place of " + std::to_string(wanted);
}

// Why `step` did not work.
std::string LockTrial::judged(Step step, const Reply &reply) {
  Refusal refusal;
  std::string why;
  if (step == Step::kTake || step == Step::kQueue || step == Step::kAskAgain) {
    why = of_grant(reply, step != Step::kQueue, refusal);
  } else if (step == Step::kInspect) {
    InspectAnswer answer;
    refusal = decode(reply, answer);
    why = refusal.message;
  } else if (step == Step::kList) {
    ListAnswer answer;
    refusal = decode(reply, answer);
    why = refusal.message;
  } else if (step == Step::kRemove) {
    refusal = refusal_of(reply);
    why = refusal.message;
  } else {
    why = of_count(reply, 1, refusal);
    // A server that keeps no texts. Callers send the text then.
    if (refusal.kind == Refusal::Kind::kNoScript) why.clear();
    // 1 if no message reaches the waiter, which then asks again.
    if (step == Step::kHandOver && !why.empty()) why = of_count(reply, 2, refusal);
  }
  is_denied_ = is_denied_ || refusal.kind == Refusal::Kind::kDenied;
  return why;
}

void LockTrial::on_reply(const Reply &reply) {
  if (is_over()) return;
  const auto step = static_cast<Step>(answer_count_++);
  std::string why = judged(step, reply);
  std::string *known = &why_no_lock_;
  const bool is_of_waiter = step == Step::kQueue || step == Step::kAskAgain;
  if (is_of_waiter || step == Step::kHandOver) known = &why_no_handover_;
  if (step == Step::kInspect) known = &why_no_inspection_;
  if (step == Step::kList) known = &why_no_list_;
  if (known->empty()) *known = std::move(why);  // the first has caused the others
}

}  // namespace redlatch::protocol
