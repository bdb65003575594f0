// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Listing of locks, a lock at a time.
#include <cassert>
#include <memory>
#include <string>

#include "base/limits.h"
#include "calls.h"
#include "info.h"

using namespace redlatch;
using namespace redlatch::capi;

struct rl_list {
  std::shared_ptr<runtime::Runtime> runtime;
  std::shared_ptr<runtime::operate::Listing> listing;
  std::shared_ptr<Request> step;  // the latest
  std::unique_ptr<rl_info> row;   // made before the step starts, and filled when it is asked for
  bool is_filled = false;

  bool is_busy() const { return step && !step->is_finished(); }
  const rl_info *info() {
    const bool is_new = step && step->status.load(std::memory_order_acquire) == Status::kOk;
    assert(!step || row);
    if (is_new && !is_filled) row->take(step->as<runtime::operate::Inspect>());
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
    request->as<runtime::operate::List>().listing = list->listing;
    return Outcome{};
  };
}

extern "C" {

rl_list *rl_list_open(rl_client *client, const char *pattern, size_t pattern_len, rl_error *err) {
  if (!is_good(client, err)) return nullptr;
  return guarded<rl_list *>(err, nullptr, [&]() -> rl_list * {
    if (client->runtime->is_quorum()) {
      return answer(err, runtime::needs_one_server("listing locks")), nullptr;
    }
    auto outcome = check_text("pattern", pattern, pattern_len);
    if (outcome.ok() && pattern_len > kMaxNameBytes) {
      outcome =
          failure(Status::kInvalid, "pattern must be at most " + std::to_string(kMaxNameBytes) +
                                        " bytes (got " + std::to_string(pattern_len) + " bytes)");
    }
    if (!outcome.ok()) return answer(err, outcome), nullptr;
    auto list = std::make_unique<rl_list>();
    list->runtime = client->runtime;
    list->listing = std::make_shared<runtime::operate::Listing>();
    list->listing->pattern =
        runtime::key_pattern(client->runtime->settings(), text_of(pattern, pattern_len));
    answer(err, Status::kOk);
    return list.release();
  });
}

rl_status rl_list_next(rl_list *list, rl_error *err) {
  const auto before = list == nullptr ? nullptr : list->step;
  const rl_status status =
      run(list, Request::What::ask<runtime::operate::List>(), err, next_step(list));
  // Not started for want of a thread or memory: the list is ready for the next call.
  if (list != nullptr && list->step != before && list->is_busy()) list->step = nullptr;
  return status;
}

rl_request *rl_list_next_start(rl_list *list) {
  const auto before = list == nullptr ? nullptr : list->step;
  rl_request *request = start(list, Request::What::ask<runtime::operate::List>(), next_step(list));
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

}  // extern "C"
