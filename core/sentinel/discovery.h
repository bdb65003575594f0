// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Discovery: which server is the primary now. Asks one sentinel after another until most of them
// agree or all were asked; a server that turns out not to be the primary is not believed. Events
// in, commands and values out; no socket, no clock.
//
//   kDialling --> kAsking --> kNamed --> kOver
//       ^------------|-----------'
//
// The first answer does not end it at once, because a sentinel that was cut off names an old
// primary: the other ones are asked as well, for a short time. If answers differ, the one with
// the greatest epoch is believed. An epoch below one that was seen earlier is believed only if most
// sentinels say so: an operator has reset them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/reply.h"
#include "base/settings.h"
#include "base/status.h"
#include "sentinel/conversation.h"

namespace redlatch::sentinel {

// The sentinels, as a client knows them. Each discovery begins with it.
struct Knowledge {
  std::vector<HostPort> others;  // sentinels, beside those of the URL
  std::vector<HostPort> silent;  // those that could not be asked last time: they are asked last
  int64_t epoch = -1;            // the greatest one seen; -1: none
  HostPort primary;              // the one that is used, or that was announced since
  // This primary was left. Sentinels that name it in this epoch are not yet informed, or a
  // promotion was aborted: see Discovery::is_left().
  HostPort left;
  int64_t left_epoch = -1;
  Nanos left_until = 0;
  HostPort first;  // the sentinel that reported it: it is asked first
};

// `opinion` has ended the primary that is known. It is not believed in an epoch up to `epoch`.
void note_switch(Knowledge &known, const Opinion &opinion, int64_t epoch, Nanos now);

class Discovery {
 public:
  enum class Stage : uint8_t {
    kDialling,  // sentinel() is to be dialled
    kAsking,    // replies of sentinel() are awaited
    kNamed,     // primary() is to be connected to: one of the next two events tells how it went
    kOver,
  };

  // `settings` outlives the discovery.
  Discovery(const Settings &settings, Knowledge known, Nanos now);

  Stage stage() const { return stage_; }
  bool is_over() const { return stage_ == Stage::kOver; }
  // The settings of the sentinel that is dialled or asked.
  const Settings &sentinel() const { return asked_; }
  size_t awaited_count() const { return awaited_count_; }
  // Until when the dial has to succeed, the replies have to come, or the primary must be reached.
  Nanos limit() const { return limit_; }

  void on_dialled(const Send &send);
  // The sentinel could not be dialled, or its replies did not come.
  void on_failed(const Outcome &why, Nanos now);
  void on_reply(const Reply &reply, Nanos now);

  // kNamed: the primary, as the sentinel of opinion() names it.
  const HostPort &primary() const { return opinion_.primary; }
  const Opinion &opinion() const { return opinion_; }
  // The server says that it is the primary.
  void on_confirmed();
  // It cannot be reached, or it is no primary. A final reason, such as a wrong password, ends the
  // discovery.
  void on_refuted(const Outcome &why, Nanos now);

  // When it is over: ok if the primary was confirmed.
  const Outcome &outcome() const { return outcome_; }
  const Knowledge &knowledge() const { return known_; }
  Knowledge take_knowledge() noexcept { return std::move(known_); }
  Opinion take_opinion() noexcept { return std::move(opinion_); }
  // The sentence of the model that does not hold, or null.
  const char *check() const;

 private:
  struct Failure {
    HostPort sentinel;
    Outcome why;
    bool is_name_unknown;
  };

  bool is_left(const Opinion &opinion) const;
  void note_left(Nanos now);
  void consider(const HostPort &sentinel);
  void note_others(std::vector<HostPort> others);
  void ask_next(Nanos now);
  void dial_next(Nanos now);
  bool is_enough(Nanos now) const;
  void decide();
  void name(const Opinion &best);
  void end(Outcome outcome);
  const Opinion *best() const;
  size_t count_votes(const Opinion &best) const;
  bool is_of_most(const Opinion &best) const;
  bool is_refuted(const HostPort &primary) const;
  void give_up(Status status, const std::string &what);
  void give_up_unanswered();
  std::string list_failures() const;

  const Settings &settings_;
  Knowledge known_;
  const int64_t epoch_before_;
  const Nanos end_;  // of all of it

  Stage stage_ = Stage::kDialling;
  std::vector<HostPort> untried_;  // in their order
  std::vector<HostPort> listed_;   // every sentinel that is or was to be asked
  size_t total_ = 0;               // sentinels, as far as is known
  Settings asked_;
  size_t awaited_count_ = 0;
  Nanos limit_ = 0;
  Nanos others_until_ = kNever;  // once there is an answer, others are asked until then
  Opinion answer_;               // the one that is being read
  Opinion opinion_;              // the one that is believed
  std::vector<Opinion> opinions_;
  std::vector<Opinion> returned_;  // those that name the primary that was left
  std::vector<Failure> failures_;  // of sentinels
  std::vector<HostPort> refuted_;  // servers
  Outcome refutation_;             // of the last one
  Outcome outcome_;
};

}  // namespace redlatch::sentinel
