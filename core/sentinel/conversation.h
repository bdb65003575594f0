// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The commands for a sentinel, and its answers. Commands out, values in; no socket, no clock.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/reply.h"
#include "base/settings.h"
#include "base/status.h"

namespace redlatch::sentinel {

// Takes one command. The text, which may be secret, is borrowed for the call.
using Send = std::function<void(std::span<const std::string_view>)>;

// The primary, as a sentinel describes it.
struct Opinion {
  HostPort sentinel;
  HostPort primary;
  int64_t epoch = -1;      // of its configuration, which each failover raises; -1: not known
  bool is_switch = false;  // it has just changed, and has no epoch
};

// RESP3, user and name. `settings` are those of the sentinel.
void say_hello(const Settings &settings, const Send &send);
// True if it is a sentinel that can be asked.
Outcome check_hello(const Reply &reply, const Settings &settings);

// One SENTINEL command with the name of the primary.
void ask(std::string_view question, std::string_view primary_name, const Send &send);
inline constexpr std::string_view kAddress = "GET-MASTER-ADDR-BY-NAME";
inline constexpr std::string_view kOthers = "SENTINELS";
inline constexpr std::string_view kPrimary = "MASTER";
// SENTINEL MYID, which sentinels before 6.2 do not know.
void ask_id(const Send &send);

// The answer to kAddress. kInvalid: it does not know the name.
Outcome read_address(const Reply &reply, const Settings &settings, std::string_view primary_name,
                     HostPort &address);
// The answer to kOthers: the other sentinels; empty if it may not be asked.
std::vector<HostPort> read_others(const Reply &reply);
// The same with their ids, which may be empty.
struct NamedSentinel {
  HostPort address;
  std::string id;
};
std::vector<NamedSentinel> read_members(const Reply &reply);
// The answer to kPrimary: the epoch; -1 if it may not be asked.
int64_t read_epoch(const Reply &reply);
// How many sentinels have to agree that the primary is down, and how many others there are.
struct GroupSize {
  int64_t quorum = -1;  // -1: not known
  int64_t other_count = -1;

  bool operator==(const GroupSize &) const = default;
  bool is_known() const { return quorum >= 0 && other_count >= 0; }
};
GroupSize read_group_size(const Reply &reply);
// The answer to ask_id(); empty if it has none.
std::string read_id(const Reply &reply);
// @return false if the texts are no address.
bool read_host_port(std::string_view host, std::string_view port, HostPort &address);

// The failure of a refused command.
Outcome refused(const Reply &reply, const Settings &settings);

}  // namespace redlatch::sentinel
