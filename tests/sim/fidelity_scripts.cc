// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// StepMaker: steps that run our scripts, with arguments as clients send them.
#include <algorithm>
#include <array>

#include "fidelity_steps.h"
#include "protocol/scripts.h"
#include "protocol/token.h"

namespace redlatch::sim {

using protocol::Script;

// A ttl above 0, for scripts that use SET PXAT: servers differ in whether a key that ends in the
// past exists for a moment.
std::string StepMaker::lasting(const std::string &time) {
  return time.empty() || time[0] <= '0' ? "5000" : time;
}

// ACQUIRE, ACQUIRE READ, UPGRADE.
StepMaker::Words StepMaker::acquire(const LockTexts &lock, Script which) {
  Words words = {lock.lock, lock.queue, lock.fence, lock.readers};
  if (which != Script::kUpgrade) words.push_back(lock.turn);
  const std::string member = is_one_in(8) ? queued_in(lock.queue) : this->member();
  const bool is_try = is_one_in(5);
  const bool is_repeated = is_one_in(which == Script::kUpgrade ? 2 : 4);
  words.push_back(is_repeated     ? sharer_in(lock)
                  : is_one_in(20) ? text()
                                  : member.substr(0, protocol::kTokenSize));
  words.push_back(which == Script::kAcquire ? ms() : lasting(ms()));
  words.push_back(is_try ? "" : member);
  words.push_back(is_one_in(8) ? number() : "");
  words.push_back(kPrefix);
  if (lock.format == protocol::Format::kHash) words.push_back(owner_of(lock));
  if (which == Script::kAcquireRead) words.push_back(is_one_in(3) ? sharer_in(lock) : "");
  return words;
}

StepMaker::Words StepMaker::release(const LockTexts &lock) {
  Words words = {lock.lock, lock.queue, lock.fence, lock.readers, lock.turn};
  words.insert(words.end(), {sharer_in(lock), kPrefix});
  if (lock.format == protocol::Format::kHash) words.push_back(owner_of(lock));
  static const char *const kBursts[] = {"-2", "-1", "-1", "0", "1", "2"};
  // The script multiplies it: servers differ in how they write a product of 1e17 and more.
  std::string length = ms();
  if (length.size() > 14) length = "100000";
  words.insert(words.end(), {kBursts[below(6)], length, std::to_string(1 + below(20))});
  return words;
}

StepMaker::Words StepMaker::extend(const LockTexts &lock) {
  Words words = {lock.lock};
  const bool is_described = is_one_in(2);
  if (is_described) words.push_back(lock.info);
  words.insert(words.end(), {holder_of(lock.lock), ms()});
  if (is_described && is_one_in(2)) words.insert(words.end(), {"who", text(), "label", text()});
  return words;
}

// Keys and arguments.
StepMaker::Words StepMaker::arguments(const LockTexts &lock, Script which) {
  const bool is_hash = lock.format == protocol::Format::kHash;
  Words words = {lock.lock, lock.queue, lock.fence, lock.readers};
  switch (which) {
    case Script::kVote:
      return acquire(lock, Script::kAcquire);
    case Script::kAcquire:
    case Script::kAcquireRead:
    case Script::kUpgrade:
      return acquire(lock, which);
    case Script::kRelease:
      return release(lock);
    case Script::kExtend:
      return extend(lock);
    case Script::kRaiseFence: {
      const std::string fence =
          is_one_in(20) ? text() : "1700000000" + std::to_string(100'000 + below(900'000));
      return {lock.lock, lock.fence, holder_of(lock.lock), fence};
    }
    case Script::kDetach:
      words = {lock.lock, lock.readers, lock.info, sharer_in(lock), std::to_string(below(3))};
      break;
    case Script::kAttach:
      return {lock.lock, lock.readers, lock.info, sharer_in(lock), lasting(ms()), text()};
    case Script::kExtendShared:
      words = {lock.lock, lock.readers, sharer_in(lock), lasting(ms())};
      break;
    case Script::kDowngrade:
      words.insert(words.end(), {sharer_in(lock), lasting(ms()), kPrefix});
      return words;
    case Script::kCancel:
      words.insert(words.end(), {queued_in(lock.queue), kPrefix});
      break;
    case Script::kServeQueue:
      words.push_back(kPrefix);
      return words;
    case Script::kInspect:
      return {lock.lock, lock.queue,   lock.fence,
              lock.info, lock.readers, is_one_in(4) ? number() : "256"};
    case Script::kForceRelease:
      words.insert(words.end(), {is_one_in(2) ? "" : sharer_in(lock), kPrefix});
      return words;
    default:
      return {any(channels(false)), kPrefix + std::string("nobody")};
  }
  if (is_hash) words.push_back(owner_of(lock));
  return words;
}

// One of our scripts, with arguments as a client sends them; sometimes with arguments missing or
// keys mixed up.
Step StepMaker::script() {
  static constexpr Script kScripts[] = {
      Script::kAcquire,      Script::kAcquire,     Script::kAcquire,      Script::kAcquireRead,
      Script::kAcquireRead,  Script::kAcquireRead, Script::kUpgrade,      Script::kDowngrade,
      Script::kRelease,      Script::kRelease,     Script::kCancel,       Script::kServeQueue,
      Script::kExtend,       Script::kInspect,     Script::kForceRelease, Script::kProbe,
      Script::kExtendShared, Script::kRaiseFence,  Script::kDetach,       Script::kAttach,
      Script::kVote};
  Script which = kScripts[below(std::size(kScripts))];
  auto format = is_one_in(3) ? protocol::Format::kHash : protocol::Format::kString;
  const bool is_sharded = is_one_in(2);
  if (protocol::script_text(which, format, is_sharded).size == 0)
    format = protocol::Format::kString;
  const LockTexts &lock = locks(format)[is_one_in(5)];
  Words words = arguments(lock, which);
  size_t key_count = 0;
  while (key_count < words.size() && which != Script::kProbe &&
         (key_count == 0 || words[key_count].find(":rl1") != std::string::npos) &&
         words[key_count] != kPrefix) {
    key_count++;
  }
  if (is_one_in(60)) words[below(words.size())] = is_one_in(2) ? key() : text();
  const bool is_of_sharers = which == Script::kAcquire || which == Script::kVote ||
                             which == Script::kAcquireRead || which == Script::kUpgrade ||
                             which == Script::kExtendShared || which == Script::kDowngrade;
  const size_t lease = key_count + 1;
  if (is_of_sharers && lease < words.size()) words[lease] = lasting(words[lease]);
  if (is_one_in(80)) words.resize(std::max(key_count, below(words.size() + 1)));
  const protocol::ScriptText &text = protocol::script_text(which, format, is_sharded);
  Step step = called(text.sha1, text.text(), std::move(words), key_count);
  if (which == Script::kInspect) step.likeness = Likeness::kInfo;
  return step;
}

}  // namespace redlatch::sim
