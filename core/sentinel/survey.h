// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Survey: how the sentinels themselves are. Asks every one that is known, also when most agree, and
// judges the answers. It is made on request only: no connection waits for it. Events in, commands
// and findings out; no socket, no clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/finding.h"
#include "base/reply.h"
#include "base/settings.h"
#include "base/status.h"
#include "sentinel/conversation.h"

namespace redlatch::sentinel {

class Survey {
 public:
  // `others`: sentinels beside those of the URL. All are asked until `limit`. `settings` outlives
  // the survey.
  Survey(const Settings &settings, const std::vector<HostPort> &others, Nanos now, Nanos limit);

  bool is_over() const { return turn_ == members_.size(); }
  // The settings of the sentinel that is to be dialled, or is asked.
  const Settings &sentinel() const { return asked_; }
  size_t awaited_count() const { return awaited_count_; }
  // Until when the dial has to succeed and the replies have to come.
  Nanos limit() const { return limit_; }

  void on_dialled(const Send &send);
  // The sentinel could not be dialled, or its replies did not come.
  void on_failed(const Outcome &why, Nanos now);
  void on_reply(const Reply &reply, Nanos now);

  // When it is over: always the same ids in the same order.
  std::vector<Finding> findings() const;

 private:
  struct Member {
    HostPort address;
    std::string id;  // of the sentinel, which may have several addresses; empty: not known
    Outcome why;     // it does not answer
    Outcome why_no_primary;
    HostPort primary;
    GroupSize size;
    int64_t epoch = -1;
    bool is_same = false;  // another address of a sentinel that is in the list

    bool answers() const { return why.ok(); }
  };

  void add(const HostPort &address, const std::string &id);
  void next(Nanos now);
  void merge();
  size_t count() const;
  size_t answering_count() const;
  size_t group_count() const;
  Finding answering() const;
  Finding primary() const;
  Finding quorum() const;
  std::string list_opinions() const;
  std::string list_failures() const;

  const Settings &settings_;
  const Nanos end_;
  std::vector<Member> members_;
  size_t turn_ = 0;
  Settings asked_;
  size_t awaited_count_ = 0;
  Nanos limit_ = 0;
};

}  // namespace redlatch::sentinel
