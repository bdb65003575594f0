// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Recalls: asking the holders of a lock to finish, and being asked.
#include <string>

#include "base/limits.h"
#include "calls.h"

using namespace redlatch;
using namespace redlatch::capi;

namespace {

using runtime::operate::Recall;

constexpr auto kRecall = Request::What::ask<Recall>();

auto recall_of(const char *name, size_t name_len, const char *reason, size_t reason_len) {
  return [=](Request &request) {
    auto outcome = fill_name(request, name, name_len);
    if (outcome.ok()) outcome = check_text("reason", reason, reason_len);
    if (outcome.ok() && reason_len > kMaxReasonBytes) {
      outcome =
          failure(Status::kInvalid, "reason must be at most " + std::to_string(kMaxReasonBytes) +
                                        " bytes (got " + std::to_string(reason_len) + " bytes)");
    }
    if (outcome.ok()) request.as<Recall>().reason = text_of(reason, reason_len);
    return outcome;
  };
}

}  // namespace

extern "C" {

rl_status rl_recall(rl_client *client, const char *name, size_t name_len, const char *reason,
                    size_t reason_len, int64_t *heard, rl_error *err) {
  if (heard != nullptr) *heard = 0;
  std::shared_ptr<Request> sent;
  const auto fill = recall_of(name, name_len, reason, reason_len);
  const auto status = run(client, kRecall, err, [&](const std::shared_ptr<Request> &request) {
    sent = request;
    return fill(*request);
  });
  if (heard != nullptr && status == RL_OK) *heard = sent->as<Recall>().heard;
  return status;
}

rl_request *rl_recall_start(rl_client *client, const char *name, size_t name_len,
                            const char *reason, size_t reason_len) {
  return start(client, kRecall, recall_of(name, name_len, reason, reason_len));
}

int64_t rl_recall_heard(const rl_request *request) {
  if (request == nullptr || rl_request_status(request) != RL_OK) return 0;
  const Request &done = *request->request;
  Recall *recall = done.task ? done.task->as_recall() : nullptr;
  return recall == nullptr ? 0 : recall->heard;
}

int64_t rl_lease_recall_count(const rl_lease *lease) {
  if (lease == nullptr || lease->runtime->is_forked()) return 0;
  return guarded(nullptr, int64_t{0},
                 [&] { return lease->runtime->recalled(*lease->lease).count; });
}

size_t rl_lease_recall_reason(const rl_lease *lease, char *buffer, size_t buffer_size) {
  if (lease == nullptr || lease->runtime->is_forked()) return copy_out({}, buffer, buffer_size);
  return guarded_text(buffer, buffer_size, [&] {
    return copy_out(lease->runtime->recalled(*lease->lease).reason, buffer, buffer_size);
  });
}

}  // extern "C"
