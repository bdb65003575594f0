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

// What a sentinel says of the primary.
struct Opinion {
  HostPort sentinel;
  HostPort primary;
  int64_t epoch = -1;      // of its configuration, which each failover raises; -1: not known
  bool is_switch = false;  // it has just changed, and has no epoch
};

// RESP3, user and name. `settings` are those of the sentinel.
void say_hello(const Settings &settings, const Send &send);
// Whether it is a sentinel that can be asked.
Outcome check_hello(const Reply &reply, const Settings &settings);

// One SENTINEL command with the name of the primary.
void ask(std::string_view question, std::string_view primary_name, const Send &send);
inline constexpr std::string_view kAddress = "GET-MASTER-ADDR-BY-NAME";
inline constexpr std::string_view kOthers = "SENTINELS";
inline constexpr std::string_view kPrimary = "MASTER";

// The answer to kAddress. kInvalid: it does not know the name.
Outcome read_address(const Reply &reply, const Settings &settings, std::string_view primary_name,
                     HostPort &address);
// The answer to kOthers: the other sentinels; empty if it may not be asked.
std::vector<HostPort> read_others(const Reply &reply);
// The answer to kPrimary: the epoch; -1 if it may not be asked.
int64_t read_epoch(const Reply &reply);
// @return false if the texts are no address.
bool read_host_port(std::string_view host, std::string_view port, HostPort &address);

// The failure of a refused command.
Outcome refused(const Reply &reply, const Settings &settings);

}  // namespace redlatch::sentinel
