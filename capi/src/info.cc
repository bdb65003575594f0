// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// The rows of an rl_info, and the fields of each.
#include "info.h"

#include <algorithm>
#include <cassert>
#include <span>

using namespace redlatch;
using namespace redlatch::capi;

namespace {

// The parts that have a field.
enum : uint32_t {
  kLock = 1U << RL_PART_LOCK,
  kHolder = 1U << RL_PART_HOLDER,
  kWaiter = 1U << RL_PART_WAITER,
  kServer = 1U << RL_PART_SERVER,
  kNode = 1U << RL_PART_NODE,
  kFinding = 1U << RL_PART_FINDING,
  kMark = 1U << RL_PART_MARK
};

struct Field {
  int32_t number;
  uint32_t parts;
};

constexpr Field kNumbers[] = {
#define RL_INFO_NUMBER(NAME, number, parts, ...) {RL_FIELD_##NAME, parts},
#include "../info_fields.def"
};

constexpr Field kTexts[] = {
#define RL_INFO_TEXT(NAME, number, parts, ...) {RL_FIELD_##NAME, parts},
#include "../info_fields.def"
};

// True if row `index` of `part` exists and has `field`, which is one of `fields`.
bool has(const rl_info *info, int32_t part, int32_t index, int32_t field,
         std::span<const Field> fields) {
  if (info == nullptr || !info->has_row(part, index)) return false;
  if (field == RL_FIELD_CLOCK_MS && part == RL_PART_NODE &&
      !info->nodes[static_cast<size_t>(index)].clock_difference) {
    return false;
  }
  return std::any_of(fields.begin(), fields.end(), [&](const Field &known) {
    return known.number == field && (known.parts & (1U << part)) != 0;
  });
}

int64_t lock_number(const rl_info &info, int32_t field) {
  switch (field) {
    case RL_FIELD_STATE:
      return info.state();
    case RL_FIELD_REMAINING_MS:
      return info.state() == RL_STATE_FREE ? 0 : info.data.pttl_ms;
    case RL_FIELD_FENCE:
      return info.data.fence;
    case RL_FIELD_WAITING:
      return info.data.waiter_count;
    case RL_FIELD_SERVER_MS:
      return info.data.server_ms;
    case RL_FIELD_HOLDING:
      if (info.is_shared()) return info.data.holder_count;
      return rl_info_count(&info, RL_PART_HOLDER);
    case RL_FIELD_USED:
      return info.data.used;
    case RL_FIELD_LIMIT:
      return info.data.limit;
    case RL_FIELD_CAP:
      return info.data.cap;
    case RL_FIELD_CAP_REMAINING_MS:
      return info.data.cap_left_ms;
    case RL_FIELD_POSITION:
      return info.data.position;
    default:
      return 0;
  }
}

int64_t holder_number(const rl_info &info, size_t index, int32_t field) {
  assert(index < (info.is_shared() ? info.data.holders.size() : 1));
  switch (field) {
    case RL_FIELD_REMAINING_MS:
      if (info.is_shared()) return info.data.holders[index].expiry_ms - info.data.server_ms;
      return info.data.pttl_ms;
    case RL_FIELD_SINCE_MS:
      return info.since_ms();
    case RL_FIELD_PERMITS:
      return info.is_shared() ? info.data.holders[index].permits : 0;
    case RL_FIELD_RECALLABLE:
      return runtime::is_recallable(info.data.value) ? 1 : 0;
    case RL_FIELD_MODE:
      return info.is_read() ? RL_MODE_READ : RL_MODE_WRITE;
    default:
      return 0;
  }
}

int64_t waiter_number(const runtime::Info::Waiter &waiter, int32_t field) {
  if (field == RL_FIELD_SINCE_MS) return waiter.since_ms;
  return waiter.mode == runtime::Mode::kRead      ? RL_MODE_READ
         : waiter.mode == runtime::Mode::kUpgrade ? RL_MODE_UPGRADE
                                                  : RL_MODE_WRITE;
}

int64_t mark_number(const rl_info &info, size_t index, int32_t field) {
  const runtime::Info::Mark &mark = info.data.marks[index];
  switch (field) {
    case RL_FIELD_SINCE_MS:
      return mark.since_ms;
    case RL_FIELD_REMAINING_MS:
      return mark.ends_ms - info.data.server_ms;
    case RL_FIELD_DONE:
      return mark.is_done ? 1 : 0;
    default:
      return mark.tries;
  }
}

int64_t server_number(const rl_info &info, int32_t field) {
  switch (field) {
    case RL_FIELD_PID:
      return info.server.pid;
    case RL_FIELD_CLIENT_COUNT:
      return info.server.client_count;
    case RL_FIELD_LOCK_COUNT:
      return info.server.lock_count;
    default:
      return 0;
  }
}

std::string_view server_text(const rl_info &info, int32_t field) {
  return field == RL_FIELD_FOLDER ? info.server.folder : info.server.version;
}

std::string_view lock_text(const rl_info &info, int32_t field) {
  if (field == RL_FIELD_TYPE) return info.data.type;
  if (field == RL_FIELD_NAME) return info.name;
  return info.data.hold_count > 0 ? std::string_view(info.data.value) : std::string_view();
}

std::string_view waiter_text(const runtime::Info::Waiter &waiter, int32_t field) {
  if (field == RL_FIELD_CANDIDATE) return waiter.candidate;
  return field == RL_FIELD_TOKEN ? waiter.token : waiter.who;
}

int64_t node_number(const NodeStatus &node, int32_t field) {
  if (field == RL_FIELD_STATE) return static_cast<int64_t>(node.state);
  if (field == RL_FIELD_ROLE) return static_cast<int64_t>(node.role);
  return node.clock_difference.value_or(0) / kMs;
}

std::string_view node_text(const NodeStatus &node, int32_t field) {
  if (field == RL_FIELD_ADDRESS) return node.address;
  return field == RL_FIELD_REASON ? node.reason : node.version;
}

// A finding and its server.
struct FindingRow {
  size_t node;
  const Finding &finding;
};
FindingRow finding_at(const rl_info &info, size_t row) {
  assert(row < info.finding_count());
  size_t at = 0;
  while (row >= info.nodes[at].findings.size()) row -= info.nodes[at++].findings.size();
  return {at, info.nodes[at].findings[row]};
}

int64_t finding_number(const FindingRow &row, int32_t field) {
  if (field == RL_FIELD_NODE) return static_cast<int64_t>(row.node);
  return static_cast<int64_t>(row.finding.level);
}

std::string_view finding_text(const rl_info &info, const FindingRow &row, int32_t field) {
  switch (field) {
    case RL_FIELD_ID:
      return row.finding.id;
    case RL_FIELD_SEEN:
      return row.finding.seen;
    case RL_FIELD_ADVICE:
      return row.finding.advice;
    default:
      return info.nodes[row.node].address;
  }
}

std::string_view holder_text(const rl_info &info, size_t index, int32_t field) {
  switch (field) {
    case RL_FIELD_TOKEN:
      if (info.is_shared()) return info.data.holders[index].token;
      return info.data.value;
    case RL_FIELD_HOLDER:
      if (info.is_shared()) return info.data.holders[index].who;
      return info.data.who;
    case RL_FIELD_LABEL:
      return info.data.label;
    case RL_FIELD_CANDIDATE:
      return info.data.candidate;
    default:
      return {};
  }
}

}  // namespace

extern "C" {

int32_t rl_info_count(const rl_info *info, int32_t part) {
  if (info == nullptr) return 0;
  if (part == RL_PART_NODE) return static_cast<int32_t>(info->nodes.size());
  if (part == RL_PART_FINDING) return static_cast<int32_t>(info->finding_count());
  if (!info->nodes.empty()) return 0;
  if (info->is_of_server) return part == RL_PART_SERVER ? 1 : 0;
  const int32_t state = info->state();
  if (part == RL_PART_LOCK) return 1;
  if (part == RL_PART_HOLDER && info->is_shared()) {
    return static_cast<int32_t>(info->data.holders.size());
  }
  if (part == RL_PART_HOLDER) return state == RL_STATE_HELD || state == RL_STATE_FOREIGN ? 1 : 0;
  if (part == RL_PART_WAITER) return static_cast<int32_t>(info->data.waiters.size());
  if (part == RL_PART_MARK) return static_cast<int32_t>(info->data.marks.size());
  return 0;
}

int32_t rl_info_has(const rl_info *info, int32_t part, int32_t index, int32_t field) {
  return has(info, part, index, field, kNumbers) || has(info, part, index, field, kTexts) ? 1 : 0;
}

int64_t rl_info_number(const rl_info *info, int32_t part, int32_t index, int32_t field) {
  if (!has(info, part, index, field, kNumbers)) return RL_NO_NUMBER;
  if (part == RL_PART_LOCK) return lock_number(*info, field);
  if (part == RL_PART_SERVER) return server_number(*info, field);
  const auto row = static_cast<size_t>(index);
  if (part == RL_PART_NODE) return node_number(info->nodes[row], field);
  if (part == RL_PART_FINDING) return finding_number(finding_at(*info, row), field);
  if (part == RL_PART_HOLDER) return holder_number(*info, row, field);
  if (part == RL_PART_MARK) return mark_number(*info, row, field);
  return waiter_number(info->data.waiters[row], field);
}

size_t rl_info_text(const rl_info *info, int32_t part, int32_t index, int32_t field, char *buffer,
                    size_t buffer_size) {
  if (!has(info, part, index, field, kTexts)) {
    copy_out({}, buffer, buffer_size);
    return RL_NO_TEXT;
  }
  const auto row = static_cast<size_t>(index);
  std::string_view text;
  if (part == RL_PART_LOCK) text = lock_text(*info, field);
  if (part == RL_PART_HOLDER) text = holder_text(*info, row, field);
  if (part == RL_PART_WAITER) text = waiter_text(info->data.waiters[row], field);
  if (part == RL_PART_SERVER) text = server_text(*info, field);
  if (part == RL_PART_MARK) text = info->data.marks[row].text;
  if (part == RL_PART_NODE) text = node_text(info->nodes[row], field);
  if (part == RL_PART_FINDING) text = finding_text(*info, finding_at(*info, row), field);
  return copy_out(text, buffer, buffer_size);
}

void rl_info_free(rl_info *info) { delete info; }

}  // extern "C"
