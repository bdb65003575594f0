// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Inspection, listing and forced release.
#include <algorithm>
#include <set>
#include <span>
#include <vector>

#include "base/limits.h"
#include "calls.h"

using namespace redlatch;
using namespace redlatch::capi;

struct rl_info {
  std::string name;
  runtime::Info data;
  bool is_of_server = false;
  runtime::ServerInfo server;
  std::vector<NodeStatus> nodes;  // of rl_client_info() and rl_client_check()

  size_t finding_count() const {
    size_t count = 0;
    for (const NodeStatus &node : nodes) count += node.findings.size();
    return count;
  }

  int32_t state() const {
    if (data.type == "none") return RL_STATE_FREE;
    if (data.type != "string" && data.value.empty()) return RL_STATE_NO_LOCK;
    if (runtime::is_held_by_client(data)) return RL_STATE_HELD;
    const bool has_expired_readers = data.value == runtime::kShared && !is_shared();
    return has_expired_readers ? RL_STATE_FREE : RL_STATE_FOREIGN;
  }
  // Held by readers, or by a reentrant owner.
  bool is_shared() const { return data.holder_count > 0; }
  bool is_read() const { return data.value == runtime::kShared; }
  // Without a description the fence shows it: it is made from the server's clock at the grant.
  int64_t since_ms() const {
    if (data.since_ms > 0 || is_shared() || state() != RL_STATE_HELD) return data.since_ms;
    const int64_t minted_ms = data.fence / 1000;
    return minted_ms <= data.server_ms ? minted_ms : 0;
  }
  bool has_row(int32_t part, int32_t index) const {
    return index >= 0 && index < rl_info_count(this, part);
  }
};

namespace {

constexpr uint32_t parts(int32_t one, int32_t other = 0) { return (1U << one) | (1U << other); }

struct Field {
  int32_t number;
  uint32_t parts;  // a bit for each part that has it
};

constexpr Field kNumbers[] = {
    {RL_FIELD_STATE, parts(RL_PART_LOCK, RL_PART_NODE)},
    {RL_FIELD_REMAINING_MS, parts(RL_PART_LOCK, RL_PART_HOLDER)},
    {RL_FIELD_FENCE, parts(RL_PART_LOCK)},
    {RL_FIELD_WAITING, parts(RL_PART_LOCK)},
    {RL_FIELD_SERVER_MS, parts(RL_PART_LOCK)},
    {RL_FIELD_SINCE_MS, parts(RL_PART_HOLDER, RL_PART_WAITER)},
    {RL_FIELD_HOLDING, parts(RL_PART_LOCK)},
    {RL_FIELD_MODE, parts(RL_PART_HOLDER, RL_PART_WAITER)},
    {RL_FIELD_PID, parts(RL_PART_SERVER)},
    {RL_FIELD_CLIENT_COUNT, parts(RL_PART_SERVER)},
    {RL_FIELD_LOCK_COUNT, parts(RL_PART_SERVER)},
    {RL_FIELD_ROLE, parts(RL_PART_NODE)},
    {RL_FIELD_CLOCK_MS, parts(RL_PART_NODE)},
    {RL_FIELD_LEVEL, parts(RL_PART_FINDING)},
    {RL_FIELD_NODE, parts(RL_PART_FINDING)},
};

constexpr Field kTexts[] = {
    {RL_FIELD_TYPE, parts(RL_PART_LOCK)},
    {RL_FIELD_NAME, parts(RL_PART_LOCK)},
    {RL_FIELD_OWNER, parts(RL_PART_LOCK)},
    {RL_FIELD_TOKEN, parts(RL_PART_HOLDER, RL_PART_WAITER)},
    {RL_FIELD_HOLDER, parts(RL_PART_HOLDER, RL_PART_WAITER)},
    {RL_FIELD_LABEL, parts(RL_PART_HOLDER)},
    {RL_FIELD_FOLDER, parts(RL_PART_SERVER)},
    {RL_FIELD_VERSION, parts(RL_PART_SERVER, RL_PART_NODE)},
    {RL_FIELD_ADDRESS, parts(RL_PART_NODE, RL_PART_FINDING)},
    {RL_FIELD_REASON, parts(RL_PART_NODE)},
    {RL_FIELD_ID, parts(RL_PART_FINDING)},
    {RL_FIELD_SEEN, parts(RL_PART_FINDING)},
    {RL_FIELD_ADVICE, parts(RL_PART_FINDING)},
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
    default:
      return 0;
  }
}

int64_t holder_number(const rl_info &info, size_t index, int32_t field) {
  switch (field) {
    case RL_FIELD_REMAINING_MS:
      if (info.is_shared()) return info.data.holders[index].expiry_ms - info.data.server_ms;
      return info.data.pttl_ms;
    case RL_FIELD_SINCE_MS:
      return info.since_ms();
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

// A finding and its server. `row` exists.
struct FindingRow {
  size_t node;
  const Finding &finding;
};
FindingRow finding_at(const rl_info &info, size_t row) {
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
    default:
      return {};
  }
}

// The findings of a finished inspection.
void read_result(Request &request, rl_info &info) noexcept {
  auto &inspection = request.as<runtime::Inspect>();
  info.name = std::move(inspection.name);
  info.data = std::move(inspection.info);
}

Outcome fill_name(Request &request, const char *name, size_t name_len) {
  auto outcome = runtime::check_name(text_of(name, name_len));
  if (outcome.ok()) request.name = text_of(name, name_len);
  return outcome;
}

auto force_with(const char *name, size_t name_len, const char *token, size_t token_len) {
  return [=](Request &request) {
    auto outcome = fill_name(request, name, name_len);
    if (outcome.ok() && text_of(token, token_len).empty()) {
      outcome = failure(Status::kInvalid, "token must be that of a holder (got an empty text)");
    }
    if (outcome.ok()) request.as<runtime::Force>().token = text_of(token, token_len);
    return outcome;
  };
}

auto force_any(const char *name, size_t name_len) {
  return [=](Request &request) { return fill_name(request, name, name_len); };
}

}  // namespace

struct rl_list {
  std::shared_ptr<runtime::Runtime> runtime;
  std::shared_ptr<runtime::Listing> listing;
  std::shared_ptr<Request> step;  // the latest
  std::unique_ptr<rl_info> row;   // made before the step starts, and filled when it is asked for
  bool is_filled = false;

  bool is_busy() const { return step && !step->is_finished(); }
  const rl_info *info() {
    const bool is_new = step && step->status.load(std::memory_order_acquire) == Status::kOk;
    if (is_new && !is_filled) read_result(*step, *row);
    is_filled = is_filled || is_new;
    return is_filled ? row.get() : nullptr;
  }
};

static auto next_step(rl_list *list) {
  return [list](const std::shared_ptr<Request> &request) {
    if (list->is_busy()) {
      return failure(Status::kInvalid,
                     "a list must have one request at a time (got a second one before the first "
                     "was finished)");
    }
    list->row = std::make_unique<rl_info>();
    list->is_filled = false;
    list->step = request;
    request->as<runtime::List>().listing = list->listing;
    return Outcome{};
  };
}

extern "C" {

rl_info *rl_inspect(rl_client *client, const char *name, size_t name_len, rl_error *err) {
  return guarded<rl_info *>(err, nullptr, [&]() -> rl_info * {
    // Before the server is asked, as the lease of an acquire.
    auto info = std::make_unique<rl_info>();
    std::shared_ptr<Request> inspection;
    const auto fill = [&](const std::shared_ptr<Request> &request) {
      inspection = request;
      return fill_name(*request, name, name_len);
    };
    if (run(client, Request::Op::kInspect, err, fill) != RL_OK) return nullptr;
    read_result(*inspection, *info);
    return info.release();
  });
}

rl_request *rl_inspect_start(rl_client *client, const char *name, size_t name_len) {
  return start(client, Request::Op::kInspect,
               [&](Request &request) { return fill_name(request, name, name_len); });
}

rl_info *rl_request_take_info(rl_request *request) {
  if (request == nullptr || !request->runtime || request->runtime->is_forked()) return nullptr;
  Request &done = *request->request;
  const bool is_check = done.op == Request::Op::kCheck;
  if (!is_check && done.op != Request::Op::kInspect) return nullptr;
  if (rl_request_status(request) != RL_OK) return nullptr;
  return guarded<rl_info *>(nullptr, nullptr, [&]() -> rl_info * {
    auto info = std::make_unique<rl_info>();
    std::vector<NodeStatus> nodes;
    if (is_check) nodes = request->runtime->describe();
    if (request->is_taken.exchange(true)) return nullptr;
    is_check ? info->nodes.swap(nodes) : read_result(done, *info);
    return info.release();
  });
}

rl_info *rl_client_info(rl_client *client, rl_error *err) {
  if (client == nullptr) return null_argument(err, "client"), nullptr;
  if (client->runtime->is_forked()) return forked(err), nullptr;
  return guarded<rl_info *>(err, nullptr, [&]() -> rl_info * {
    auto info = std::make_unique<rl_info>();
    info->nodes = client->runtime->describe();
    answer(err, Status::kOk);
    return info.release();
  });
}

rl_info *rl_client_check(rl_client *client, int64_t wait_ms, rl_error *err) {
  return guarded<rl_info *>(err, nullptr, [&]() -> rl_info * {
    auto info = std::make_unique<rl_info>();
    const rl_status status = run(client, Request::Op::kCheck, err, wait_of(wait_ms));
    // Also without a primary: the sentinels may be the reason.
    if (client != nullptr && !client->runtime->is_forked()) client->runtime->survey_sentinels();
    if (status != RL_OK) return nullptr;
    info->nodes = client->runtime->describe();
    return info.release();
  });
}

rl_request *rl_client_check_start(rl_client *client, int64_t wait_ms) {
  return start(client, Request::Op::kCheck, wait_of(wait_ms));
}

rl_list *rl_list_open(rl_client *client, const char *pattern, size_t pattern_len, rl_error *err) {
  if (client == nullptr) return null_argument(err, "client"), nullptr;
  if (client->runtime->is_forked()) return forked(err), nullptr;
  return guarded<rl_list *>(err, nullptr, [&]() -> rl_list * {
    if (client->runtime->is_quorum()) {
      return answer(err, runtime::needs_one_server("listing locks")), nullptr;
    }
    if (auto outcome = check_text("pattern", pattern, pattern_len); !outcome.ok()) {
      return answer(err, outcome), nullptr;
    }
    if (pattern_len > kMaxNameBytes) {
      const auto size = std::to_string(pattern_len);
      return answer(err, Status::kInvalid,
                    "pattern must be at most " + std::to_string(kMaxNameBytes) + " bytes (got " +
                        size + " bytes)"),
             nullptr;
    }
    auto list = std::make_unique<rl_list>();
    list->runtime = client->runtime;
    list->listing = std::make_shared<runtime::Listing>();
    list->listing->pattern =
        runtime::key_pattern(client->runtime->settings(), text_of(pattern, pattern_len));
    answer(err, Status::kOk);
    return list.release();
  });
}

rl_status rl_list_next(rl_list *list, rl_error *err) {
  const auto before = list == nullptr ? nullptr : list->step;
  const rl_status status = run(list, Request::Op::kList, err, next_step(list));
  // Not started for want of a thread or memory: the list is ready for the next call.
  if (list != nullptr && list->step != before && list->is_busy()) list->step = nullptr;
  return status;
}

rl_request *rl_list_next_start(rl_list *list) {
  const auto before = list == nullptr ? nullptr : list->step;
  rl_request *request = start(list, Request::Op::kList, next_step(list));
  if (request == nullptr && list != nullptr && list->step != before) list->step = nullptr;
  return request;
}

const rl_info *rl_list_info(const rl_list *list) {
  // Only the list reads its step, and one thread at a time uses it.
  return list == nullptr ? nullptr : const_cast<rl_list *>(list)->info();
}

void rl_list_free(rl_list *list) {
  const NoCancel no_cancel;
  delete list;
}

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
  if (part == RL_PART_NODE) text = node_text(info->nodes[row], field);
  if (part == RL_PART_FINDING) text = finding_text(*info, finding_at(*info, row), field);
  return copy_out(text, buffer, buffer_size);
}

void rl_info_free(rl_info *info) { delete info; }

rl_info *rl_embedded_inspect(const char *url, size_t url_len, const rl_client_options *options,
                             rl_error *err) {
  return guarded<rl_info *>(err, nullptr, [&]() -> rl_info * {
    Settings settings;
    static const config::Options kNone;
    const auto &chosen = options == nullptr ? kNone : options->options;
    auto outcome = check_text("url", url, url_len);
    if (outcome.ok()) outcome = chosen.resolve(text_of(url, url_len), settings);
    if (outcome.ok() && settings.folder.empty()) {
      outcome = failure(Status::kInvalid,
                        "the URL of an embedded server must be embedded:// or embedded:///FOLDER "
                        "(got " +
                            settings.address() + ")");
    }
    if (!outcome.ok()) return answer(err, outcome), nullptr;
    auto info = std::make_unique<rl_info>();
    info->is_of_server = true;
    outcome = runtime::read_status(settings, boot_now() + settings.connect_timeout, info->server);
    answer(err, outcome);
    return outcome.ok() ? info.release() : nullptr;
  });
}

rl_status rl_force_release(rl_client *client, const char *name, size_t name_len, const char *token,
                           size_t token_len, rl_error *err) {
  return run(client, Request::Op::kForce, err, force_with(name, name_len, token, token_len));
}

rl_status rl_force_release_any(rl_client *client, const char *name, size_t name_len,
                               rl_error *err) {
  return run(client, Request::Op::kForce, err, force_any(name, name_len));
}

rl_request *rl_force_release_start(rl_client *client, const char *name, size_t name_len,
                                   const char *token, size_t token_len) {
  return start(client, Request::Op::kForce, force_with(name, name_len, token, token_len));
}

rl_request *rl_force_release_any_start(rl_client *client, const char *name, size_t name_len) {
  return start(client, Request::Op::kForce, force_any(name, name_len));
}

}  // extern "C"
