// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
#include "lock_report.h"

#include <algorithm>
#include <string_view>
#include <tuple>

#include "duration.h"
#include "handles.h"
#include "json.h"
#include "label.h"
#include "text.h"

namespace redlatch::cli {
namespace {

constexpr std::size_t kShownRows = 8;
constexpr std::size_t kShownValueBytes = 64;
constexpr const char* kPermits = "permits";  // The mode of a semaphore.

std::string text_field(const rl_info* info, std::int32_t part, std::int32_t index,
                       std::int32_t field) {
  return read_text([&](char* buffer, std::size_t size) {
    return rl_info_text(info, part, index, field, buffer, size);
  });
}

// For programs, and as `run` calls it.
const char* mode_name(std::int64_t mode) {
  switch (mode) {
    case RL_MODE_READ:
      return "shared";
    case RL_MODE_UPGRADE:
      return "upgrade";
    default:
      return "exclusive";
  }
}

const char* wish_in_words(std::int64_t mode) {
  switch (mode) {
    case RL_MODE_READ:
      return "reads";
    case RL_MODE_UPGRADE:
      return "waits to upgrade";
    default:
      return "writes";
  }
}

std::string counted(std::int64_t count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string permits_in_words(const LockReport& report) {
  return std::to_string(report.used) + " of " + counted(report.limit, "permit");
}

std::string state_in_words(const LockReport& report) {
  switch (report.state) {
    case RL_STATE_FREE:
      return "FREE";
    case RL_STATE_HELD:
      if (report.has_permits()) {
        return "HELD (" + permits_in_words(report) + ", fair)";
      }
      if (report.is_shared()) return "HELD (shared, fair)";
      return report.is_reentrant() ? "HELD (exclusive, reentrant, fair)" : "HELD (exclusive, fair)";
    case RL_STATE_FOREIGN:
      return report.is_endless() ? std::string("HELD: ") + kEndless + kOtherName
                                 : "HELD by another lock library";
    default:
      return "NO LOCK (the key is of the type " + escaped(report.type) + ")";
  }
}

std::string lease_text(const LockReport& report, std::int64_t remaining_ms) {
  if (remaining_ms < 0) return "without end";
  return "until " + date_text(report.server_ms + remaining_ms) + " (" + span_text(remaining_ms) +
         " left)";
}

std::string since_text(const LockReport& report, std::int64_t since_ms) {
  return date_text(since_ms) + " (" + span_text(report.server_ms - since_ms) + ")";
}

std::string holder_rows(const LockReport& report, const LockReport::Holder& holder) {
  std::string out;
  if (!holder.candidate.empty()) out += report_line("leader", escaped(holder.candidate));
  if (holder.is_recallable) out += report_line("retain", "its client may only retain the lock");
  if (!holder.who.empty()) out += report_line("holder", escaped(holder.who));
  if (!holder.label.empty()) out += report_line("label", escaped(holder.label));
  // A foreign value may be as long as 512 MB.
  const std::string_view token = cut(holder.token, kShownValueBytes);
  out += report_line("token", escaped(token) + (token.size() < holder.token.size() ? ".." : ""));
  if (holder.since_ms > 0) out += report_line("since", since_text(report, holder.since_ms));
  return out + report_line("lease", lease_text(report, holder.remaining_ms));
}

// Readers, holders of permits, or the holds of one owner: for each only its token, its permits and
// its lease are known.
std::string shared_rows(const LockReport& report) {
  std::string out;
  if (report.is_reentrant()) out += report_line("owner", escaped(report.owner));
  const char* const noun = report.has_permits() ? "holder" : report.is_shared() ? "reader" : "hold";
  out += report_line((std::string(noun) + "s").c_str(), std::to_string(report.holding_count));
  std::size_t shown = 0;
  for (const LockReport::Holder& holder : report.holders) {
    if (shown++ == kShownRows) return out + report_line(noun, "..");
    const std::string who = holder.who.empty() ? "" : escaped(holder.who) + " ";
    const std::string permits =
        holder.permits > 0 ? counted(holder.permits, "permit") + " " : std::string();
    out += report_line(noun, who + escaped(holder.token) + " " + permits +
                                 lease_text(report, holder.remaining_ms));
  }
  return out;
}

std::string cap_text(const LockReport& report) {
  const std::string end = report.cap_remaining_ms < 0
                              ? ""
                              : ", until " + date_text(report.server_ms + report.cap_remaining_ms) +
                                    " (" + span_text(report.cap_remaining_ms) + " left)";
  return std::to_string(report.cap) + end;
}

std::string waiting_row(const LockReport& report) {
  std::string text = std::to_string(report.waiting_count);
  std::size_t shown = 0;
  for (const LockReport::Waiter& waiter : report.waiters) {
    if (shown++ == kShownRows) {
      text += ", ..";
      break;
    }
    text += shown == 1 ? ": " : ", ";
    const std::string& shown_as = !waiter.candidate.empty() ? waiter.candidate
                                  : waiter.who.empty()      ? waiter.token
                                                            : waiter.who;
    text += escaped(cut(shown_as, kShownValueBytes));
    if (!waiter.candidate.empty()) {
      text += " campaigns";
    } else if (!report.is_semaphore()) {
      text += std::string(" ") + wish_in_words(waiter.mode);
    }
    if (waiter.since_ms > 0) text += " (" + span_text(report.server_ms - waiter.since_ms) + ")";
  }
  return report_line("waiting", text);
}

std::string mark_rows(const LockReport& report) {
  std::string out;
  std::size_t shown = 0;
  for (const LockReport::Mark& mark : report.marks) {
    if (shown++ == kShownRows) return out + report_line("once", "..");
    const std::string key = mark.key.empty() ? "" : escaped(mark.key) + ": ";
    out += report_line("once", key + mark_in_words(mark, report.server_ms));
  }
  return out;
}

std::string mark_json(const LockReport::Mark& mark) {
  JsonObject object;
  object.text("key", mark.key).raw("done", mark.is_done ? "true" : "false");
  object.text("since", date_ms_text(mark.since_ms));
  return object.number("remaining_ms", mark.remaining_ms).number("tries", mark.tries).done();
}

const char* lock_mode(const LockReport& report) {
  if (report.has_permits()) return kPermits;
  return mode_name(report.is_shared() ? RL_MODE_READ : RL_MODE_WRITE);
}

std::string holder_json(const LockReport& report, const LockReport::Holder& holder) {
  JsonObject object;
  if (!holder.candidate.empty()) object.text("candidate", holder.candidate);
  if (holder.is_recallable) object.raw("recallable", "true");
  if (!holder.who.empty()) object.text("holder", holder.who);
  if (!holder.label.empty()) object.text("label", holder.label);
  if (const LabelPairs pairs = label_pairs(holder.label); !pairs.empty()) {
    JsonObject labels;
    for (const auto& [key, value] : pairs) labels.text(key, value);
    object.raw("labels", labels.done());
  }
  object.text("token", holder.token);
  // The fence is that of a holder that uses redlatch; a foreign holder has none. The fence of a
  // reader is not known: the last number may be that of an earlier reader.
  const bool is_ours = report.state == RL_STATE_HELD;
  if (is_ours) object.text("mode", lock_mode(report));
  if (holder.permits > 0) object.number("permits", holder.permits);
  if (is_ours && !report.is_shared() && !report.has_permits() && report.fence > 0)
    object.number("fence", report.fence);
  if (holder.since_ms > 0) object.text("acquired_at", date_ms_text(holder.since_ms));
  if (holder.remaining_ms >= 0) {
    object.text("lease_until", date_ms_text(report.server_ms + holder.remaining_ms));
    object.number("remaining_ms", holder.remaining_ms);
  }
  return object.done();
}

std::string waiter_json(const LockReport& report, const LockReport::Waiter& waiter) {
  JsonObject object;
  if (!waiter.candidate.empty()) object.text("candidate", waiter.candidate);
  if (!waiter.who.empty()) object.text("waiter", waiter.who);
  object.text("token", waiter.token);
  object.text("mode", report.is_semaphore() ? kPermits : mode_name(waiter.mode));
  if (waiter.since_ms > 0) object.text("since", date_ms_text(waiter.since_ms));
  return object.done();
}

void add_permits(JsonObject& object, const LockReport& report) {
  object.number("used", report.used).number("limit", report.limit);
  object.raw("cap", report.has_cap() ? std::to_string(report.cap) : "null");
  if (report.has_cap() && report.cap_remaining_ms >= 0) {
    object.number("cap_remaining_ms", report.cap_remaining_ms);
  }
}

// An exclusive lock has one holder, the first. -1 = not known.
std::int64_t held_ms(const LockReport& report) {
  const bool is_known = !report.holders.empty() && report.holders.front().since_ms > 0;
  return is_known ? std::max<std::int64_t>(report.server_ms - report.holders.front().since_ms, 0)
                  : -1;
}

std::string holder_text(const LockReport& report) {
  if (report.state == RL_STATE_FOREIGN) return "(another library)";
  if (report.has_permits()) return permits_in_words(report);
  if (report.is_shared()) return counted(report.holding_count, "reader");
  if (report.is_reentrant()) return escaped(report.owner);
  return report.holders.empty() ? "" : escaped(report.holders.front().who);
}

std::string cap_in_words(const LockReport& report) {
  return report.has_cap() ? ", cap " + std::to_string(report.cap) : "";
}

std::string holders_in_words(const LockReport& report) {
  if (report.has_permits()) {
    return counted(report.holding_count, "holder") + ", " + permits_in_words(report) +
           cap_in_words(report);
  }
  if (report.is_shared()) return counted(report.holding_count, "reader");
  if (report.is_reentrant()) {
    return "owner " + in_quotes(report.owner) + ", " + counted(report.holding_count, "time");
  }
  const LockReport::Holder& holder = report.holders.front();
  std::string who = who_in_words(holder.who, holder.label);
  if (holder.since_ms == 0) return who;
  return who + " for " + clock_span_text(report.server_ms - holder.since_ms);
}

std::string number_or_nothing(std::int64_t number, bool is_known) {
  return is_known ? std::to_string(number) : "";
}

template <typename Cells>
void fill_empty(Cells& cells, const char* filler) {
  for (std::string& cell : cells) {
    if (cell.empty()) cell = filler;
  }
}

}  // namespace

std::string who_in_words(const std::string& who, const std::string& label) {
  const std::string name = who.empty() ? "an unnamed client" : escaped(who);
  return label.empty() ? name : name + " (label: " + escaped(label) + ")";
}

std::string stop_text(std::int64_t server_ms, std::int64_t lease_ms) {
  return "by " + date_text(server_ms + lease_ms) + " (" + span_text(lease_ms) + ")";
}

std::string mark_in_words(const LockReport::Mark& mark, std::int64_t server_ms) {
  const std::string ago = span_text(server_ms - mark.since_ms) + " ago";
  const std::string left = span_text(mark.remaining_ms);
  if (mark.is_done) return "succeeded " + ago + ", remembered for " + left + " more";
  return "a run began " + ago + " and has not succeeded (" + counted(mark.tries, "run") +
         " so far); its period ends in " + left;
}

const char* state_name(std::int64_t state) {
  switch (state) {
    case RL_STATE_FREE:
      return "free";
    case RL_STATE_HELD:
      return "held";
    case RL_STATE_FOREIGN:
      return "foreign";
    default:
      return "no_lock";
  }
}

std::string report_line(const char* title, const std::string& text) {
  std::string out = "  ";
  out += title;
  out.resize(12, ' ');
  return out + text + "\n";
}

LockReport::LockReport(const rl_info* info)
    : name(text_field(info, RL_PART_LOCK, 0, RL_FIELD_NAME)),
      type(text_field(info, RL_PART_LOCK, 0, RL_FIELD_TYPE)),
      state(rl_info_number(info, RL_PART_LOCK, 0, RL_FIELD_STATE)),
      remaining_ms(rl_info_number(info, RL_PART_LOCK, 0, RL_FIELD_REMAINING_MS)),
      fence(rl_info_number(info, RL_PART_LOCK, 0, RL_FIELD_FENCE)),
      holding_count(rl_info_number(info, RL_PART_LOCK, 0, RL_FIELD_HOLDING)),
      waiting_count(rl_info_number(info, RL_PART_LOCK, 0, RL_FIELD_WAITING)),
      server_ms(rl_info_number(info, RL_PART_LOCK, 0, RL_FIELD_SERVER_MS)),
      used(rl_info_number(info, RL_PART_LOCK, 0, RL_FIELD_USED)),
      limit(rl_info_number(info, RL_PART_LOCK, 0, RL_FIELD_LIMIT)),
      cap(rl_info_number(info, RL_PART_LOCK, 0, RL_FIELD_CAP)),
      cap_remaining_ms(rl_info_number(info, RL_PART_LOCK, 0, RL_FIELD_CAP_REMAINING_MS)) {
  for (std::int32_t i = 0; i < rl_info_count(info, RL_PART_HOLDER); ++i) {
    holders.push_back(
        {.token = text_field(info, RL_PART_HOLDER, i, RL_FIELD_TOKEN),
         .who = text_field(info, RL_PART_HOLDER, i, RL_FIELD_HOLDER),
         .label = text_field(info, RL_PART_HOLDER, i, RL_FIELD_LABEL),
         .candidate = text_field(info, RL_PART_HOLDER, i, RL_FIELD_CANDIDATE),
         .mode = rl_info_number(info, RL_PART_HOLDER, i, RL_FIELD_MODE),
         .since_ms = rl_info_number(info, RL_PART_HOLDER, i, RL_FIELD_SINCE_MS),
         .remaining_ms = rl_info_number(info, RL_PART_HOLDER, i, RL_FIELD_REMAINING_MS),
         .permits = rl_info_number(info, RL_PART_HOLDER, i, RL_FIELD_PERMITS),
         .is_recallable = rl_info_number(info, RL_PART_HOLDER, i, RL_FIELD_RECALLABLE) != 0});
  }
  for (std::int32_t i = 0; i < rl_info_count(info, RL_PART_WAITER); ++i) {
    waiters.push_back({.token = text_field(info, RL_PART_WAITER, i, RL_FIELD_TOKEN),
                       .who = text_field(info, RL_PART_WAITER, i, RL_FIELD_HOLDER),
                       .candidate = text_field(info, RL_PART_WAITER, i, RL_FIELD_CANDIDATE),
                       .mode = rl_info_number(info, RL_PART_WAITER, i, RL_FIELD_MODE),
                       .since_ms = rl_info_number(info, RL_PART_WAITER, i, RL_FIELD_SINCE_MS)});
  }
  for (std::int32_t i = 0; i < rl_info_count(info, RL_PART_MARK); ++i) {
    marks.push_back({.key = text_field(info, RL_PART_MARK, i, RL_FIELD_KEY),
                     .is_done = rl_info_number(info, RL_PART_MARK, i, RL_FIELD_DONE) == 1,
                     .since_ms = rl_info_number(info, RL_PART_MARK, i, RL_FIELD_SINCE_MS),
                     .remaining_ms = rl_info_number(info, RL_PART_MARK, i, RL_FIELD_REMAINING_MS),
                     .tries = rl_info_number(info, RL_PART_MARK, i, RL_FIELD_TRIES)});
  }
  std::sort(marks.begin(), marks.end(), [](const Mark& a, const Mark& b) {
    return std::tie(b.since_ms, a.key) < std::tie(a.since_ms, b.key);
  });
  owner = text_field(info, RL_PART_LOCK, 0, RL_FIELD_OWNER);
  // A holder without a named owner: a mutex, in the other format, or that of another library.
  if (!holders.empty() && owner == holders.front().token) owner.clear();
}

std::int64_t LockReport::longest_lease_ms() const {
  if (state != RL_STATE_HELD) return 0;
  std::int64_t longest_ms = remaining_ms;  // of holders without a row
  for (const Holder& holder : holders) longest_ms = std::max(longest_ms, holder.remaining_ms);
  return std::max<std::int64_t>(longest_ms, 0);
}

std::vector<std::string> LockReport::tokens() const {
  std::vector<std::string> out;
  for (const Holder& holder : holders) out.push_back(holder.token);
  return out;
}

LockRow report_row(const LockReport& report) {
  const bool is_ours = report.state == RL_STATE_HELD;
  const std::int64_t held = held_ms(report);
  LockRow row = {escaped(report.name),
                 !is_ours               ? ""
                 : report.has_permits() ? "P"
                 : report.is_shared()   ? "S"
                                        : "X",
                 holder_text(report),
                 held < 0 ? "" : span_text(held),
                 report.remaining_ms < 0 ? "" : span_text(report.remaining_ms),
                 number_or_nothing(report.fence, report.fence > 0),
                 std::to_string(report.waiting_count)};
  fill_empty(row, "–");
  return row;
}

std::string report_tsv(const LockReport& report) {
  const bool is_ours = report.state == RL_STATE_HELD;
  const std::int64_t held = held_ms(report);
  const bool has_lease = !report.is_free() && report.remaining_ms >= 0;
  std::array<std::string, 8> cells = {escaped(report.name),
                                      state_name(report.state),
                                      is_ours ? lock_mode(report) : "",
                                      is_ours ? holder_text(report) : "",
                                      number_or_nothing(held, held >= 0),
                                      number_or_nothing(report.remaining_ms, has_lease),
                                      number_or_nothing(report.fence, report.fence > 0),
                                      std::to_string(report.waiting_count)};
  fill_empty(cells, "-");
  std::string line;
  for (const std::string& cell : cells) line += (line.empty() ? "" : "\t") + cell;
  return line + "\n";
}

std::string report_table(const LockReport& report, bool is_colored) {
  std::string out = escaped(report.name);
  out.resize(std::max<std::size_t>(out.size(), 20), ' ');
  out += "  " + bold(state_in_words(report), is_colored) + "\n";
  if (report.is_shared() || report.is_reentrant() || report.has_permits()) {
    out += shared_rows(report);
  } else {
    for (const LockReport::Holder& holder : report.holders) out += holder_rows(report, holder);
  }
  if (const std::int64_t lease_ms = report.longest_lease_ms(); lease_ms > 0) {
    out += report_line("stops", stop_text(report.server_ms, lease_ms) + " if it is removed now");
  }
  if (report.fence > 0) out += report_line("fence", std::to_string(report.fence));
  if (report.has_cap()) out += report_line("cap", cap_text(report));
  if (report.waiting_count > 0) out += waiting_row(report);
  return out + mark_rows(report);
}

std::string report_json(const LockReport& report, const std::string& server) {
  JsonObject object;
  object.number("schema", 1);
  object.text("name", report.name);
  if (!is_utf8(report.name)) object.raw("name_is_escaped", "true");
  object.text("state", state_name(report.state));
  if (report.state == RL_STATE_HELD) {
    object.text("mode", lock_mode(report));
    object.raw("fair", "true");
    if (report.is_reentrant()) object.text("owner", report.owner);
  }
  if (report.is_semaphore()) add_permits(object, report);
  if (report.state == RL_STATE_NO_LOCK) object.text("type", report.type);
  if (report.fence > 0) object.number("fence", report.fence);
  object.number("holding", report.holding_count);
  object.raw("holders", json_array(report.holders, [&](const LockReport::Holder& holder) {
               return holder_json(report, holder);
             }));
  object.number("waiting", report.waiting_count);
  object.raw("waiters", json_array(report.waiters, [&](const LockReport::Waiter& waiter) {
               return waiter_json(report, waiter);
             }));
  if (!report.marks.empty()) object.raw("marks", json_array(report.marks, mark_json));
  object.text("server", server);
  object.text("server_time", date_ms_text(report.server_ms));
  return object.done();
}

std::string report_sentence(const LockReport& report) {
  std::string out = "held by another lock library";
  if (report.state == RL_STATE_FREE) {
    // It may have been released meanwhile.
    out =
        (report.has_cap() ? "no permit is out" : "it is not held any more") + cap_in_words(report);
  } else if (report.state == RL_STATE_NO_LOCK) {
    out = "its key is of the type " + escaped(report.type) + " and no lock";
  } else if (report.state == RL_STATE_HELD && !report.holders.empty()) {
    out = "held by " + holders_in_words(report);
  } else if (report.is_endless()) {
    out = kEndless;
  }
  if (!report.is_free() && report.remaining_ms > 0) {
    out += ", lease until " + date_text(report.server_ms + report.remaining_ms);
  }
  return out + ", " + std::to_string(report.waiting_count) + " waiting";
}

}  // namespace redlatch::cli
