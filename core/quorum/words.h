// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Words: the texts of a quorum that users read, as lock/words.h. Without memory a text is empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/settings.h"
#include "lock/request.h"
#include "lock/words.h"

namespace redlatch::quorum {

// "2 of 3 nodes"
struct NodeCount {
  size_t count, size;
};

namespace words {

using Text = std::string_view;

inline constexpr Text kShutDown = "the Redlock was shut down";
inline constexpr Text kVoteTooLate = "its vote came too late";
inline constexpr Text kUnansweredAtShutdown = "no answer before the Redlock was shut down";

// The call of a user that a quorum cannot carry out.
Text what_of(const lock::Request &request) noexcept;
// Adds to a list of reasons, or of addresses.
void add_reason(std::string &reasons, Text reason) noexcept;
void add_address(std::string &addresses, const Settings &node) noexcept;

// ---- a node
std::string of_node(const Settings &node, Text why) noexcept;
std::string same_server(const Settings &node, const Settings &other, Text run_id) noexcept;
std::string is_replica(const Settings &node) noexcept;
std::string is_cluster_member(const Settings &node) noexcept;
std::string has_unknown_age(const Settings &node, Text why) noexcept;
std::string started_lately(const Settings &node, int64_t wait_s) noexcept;
std::string has_restarted(const Settings &node) noexcept;
std::string no_answer_within(const Settings &node, int64_t ms) noexcept;
std::string too_many_replicas(NodeCount replicas, Text addresses, size_t majority) noexcept;

// ---- an acquire
std::string granted_too_late(Text lock, NodeCount majority, int64_t left_ms) noexcept;
std::string fence_unwritten(Text lock, NodeCount written) noexcept;
std::string not_granted(Text lock, NodeCount majority, int64_t wait_ms,
                        const operate::Holder &holder) noexcept;
std::string busy(Text lock, NodeCount granted, size_t majority, Text why) noexcept;
// `lock`: empty if it is about none.
std::string too_few_may_vote(Text lock, NodeCount majority, Text reasons) noexcept;
std::string wrong_type(Text lock, NodeCount nodes, Text reasons) noexcept;
std::string ttl_above_guard(int64_t guard_ms, int64_t got_ms) noexcept;
std::string ttl_below_validity(int64_t validity_ms, int64_t got_ms) noexcept;

// ---- a lease
std::string too_few_have_it(NodeCount nodes, Text reasons) noexcept;
std::string too_few_had_it(Text reasons) noexcept;
std::string done_in_part(bool is_release, NodeCount nodes, Text reasons) noexcept;

// ---- a check
std::string no_node_asked(Text reasons) noexcept;

}  // namespace words

}  // namespace redlatch::quorum
