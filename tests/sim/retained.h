// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Retained: the locks that one client keeps after their callers have released them, by token, as
// seen from outside: leases that end, and commands that are sent. Rules:
//  - a lock that no caller has is given back in the call in which its recall arrives;
//  - a client that is connected keeps no lock for longer than its last caller wanted.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "all_scripts.h"
#include "base/clock.h"
#include "commands.h"
#include "lock/request.h"
#include "protocol/token.h"

namespace redlatch::sim {

class Retained {
 public:
  // A caller has the lock. @return whether its client had retained it.
  bool granted(const lock::Request &request, Nanos now) {
    const std::string &token = request.lease->token;
    if (!protocol::is_recallable(token)) return false;
    const auto [known, is_new] = since_.emplace(token, now);
    wanted_[request.lease.get()] = known->second + request.options.retain;
    const bool was_idle = !is_new && idle_.erase(token) > 0;
    count_ += was_idle ? 1 : 0;
    return was_idle;
  }
  // Without a connection it cannot be given back at once.
  void ended(const lock::Lease &lease, bool is_up) {
    const auto found = wanted_.find(&lease);
    if (found == wanted_.end()) return;
    const bool is_released = is_up && lease.state.load() == lock::Lease::kReleased;
    if (is_released && sent_.count(lease.token) == 0)
      idle_[lease.token] = {found->second, lease.name};
    wanted_.erase(found);
  }
  // A CANCEL comes before the RELEASE of a token that may be queued again.
  void sent(Argv argv) {
    if (argv.size() < 4 || !is_of_end(argv[1])) return;
    const auto at = 3 + static_cast<size_t>(integer_of(argv[2]));
    if (at >= argv.size()) return;
    const std::string token(argv[at].substr(0, protocol::kTokenSize));
    if (!protocol::is_recallable(token)) return;
    sent_.insert(token);
    idle_.erase(token);
  }
  void recalled(const std::string &token) {
    if (idle_.count(token) > 0) recalled_.insert(token);
  }
  // After a call of the client. `has(name, token)`: the server has the lock for this token.
  // @return the rule that does not hold, or null.
  template <class Has>
  const char *check(bool is_up, Nanos now, const Has &has) {
    bool is_kept = false;
    for (const std::string &token : recalled_) is_kept = is_kept || idle_.count(token) > 0;
    recalled_.clear();
    if (is_kept) return "a retained lock that is recalled is given back at once";
    for (const auto &[token, kept] : idle_) {
      const Nanos until = std::max(kept.until, resumed_at_) + kSlack;
      if (!is_up || now <= until || !has(kept.name, token)) continue;
      kept_longest_ = token;
      return "a retained lock is kept no longer than its caller wants";
    }
    return nullptr;
  }
  // After a pause.
  void resumed(Nanos now) { resumed_at_ = now; }
  // They are given back with the next connection, unless they have expired by then.
  void disconnected() { idle_.clear(); }
  bool has_idle() const { return !idle_.empty() || !recalled_.empty(); }
  size_t count() const { return count_; }
  const std::string &kept_longest() const { return kept_longest_; }

 private:
  static constexpr Nanos kSlack = 500 * kMs;  // until the timer has run, after a reconnect

  struct Kept {
    Nanos until = 0;
    std::string name;
  };

  static bool is_of_end(std::string_view text) {
    static const auto kTexts = [] {
      std::set<std::string_view> texts;
      for_each_script(
          [&texts](protocol::Script script, protocol::Format, const protocol::ScriptText &known) {
            const bool is_end =
                script == protocol::Script::kRelease || script == protocol::Script::kCancel;
            if (!is_end) return;
            texts.insert(known.sha1);
            texts.insert(known.text());
          });
      return texts;
    }();
    return kTexts.count(text) > 0;
  }

  std::map<std::string, Nanos> since_;           // when a token was granted
  std::map<const lock::Lease *, Nanos> wanted_;  // until when its caller wants it retained
  std::map<std::string, Kept> idle_;             // tokens that no caller has
  std::set<std::string, std::less<>> sent_;      // tokens in a RELEASE
  std::set<std::string> recalled_;               // in this call, while idle
  std::string kept_longest_;                     // that broke the rule
  Nanos resumed_at_ = 0;
  size_t count_ = 0;  // local acquisitions
};

}  // namespace redlatch::sim
