// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Inspection of locks and servers, the check of a client, and forced release.
#include <memory>
#include <string>
#include <vector>

#include "base/limits.h"
#include "calls.h"
#include "host/clock.h"
#include "info.h"

using namespace redlatch;
using namespace redlatch::capi;

namespace {

auto force_with(const char *name, size_t name_len, const char *token, size_t token_len) {
  return [=](Request &request) {
    auto outcome = fill_name(request, name, name_len);
    if (outcome.ok() && text_of(token, token_len).empty()) {
      outcome = failure(Status::kInvalid, "token must be that of a holder (got an empty text)");
    }
    if (outcome.ok()) request.as<runtime::operate::Force>().token = text_of(token, token_len);
    return outcome;
  };
}

Outcome fill_cap(Request &request, const char *name, size_t name_len, int64_t cap, int64_t for_ms) {
  auto outcome = fill_name(request, name, name_len);
  const auto range = [](int64_t least, int64_t most) {
    return std::to_string(least) + " to " + std::to_string(most);
  };
  if (outcome.ok() && (cap < -1 || cap > kMaxPermits)) {
    outcome = failure(Status::kInvalid, "cap must be " + range(0, kMaxPermits) +
                                            ", or -1 for none (got " + std::to_string(cap) + ")");
  }
  if (outcome.ok() && (for_ms < 0 || for_ms > kMaxTtlMs || (for_ms > 0 && cap < 0))) {
    const std::string allowed = cap < 0 ? "0 without a cap" : range(0, kMaxTtlMs);
    outcome = failure(Status::kInvalid,
                      "for_ms must be " + allowed + " (got " + std::to_string(for_ms) + ")");
  }
  if (!outcome.ok()) return outcome;
  auto &task = request.as<runtime::operate::SetCap>();
  if (cap >= 0) task.cap = cap;
  task.for_ms = for_ms;
  return outcome;
}

}  // namespace

extern "C" {

rl_info *rl_inspect(rl_client *client, const char *name, size_t name_len, rl_error *err) {
  return run_for_info(client, Request::What::ask<runtime::operate::Inspect>(), err,
                      lock_named(name, name_len));
}

rl_info *rl_semaphore_stats(rl_client *client, const char *name, size_t name_len, rl_error *err) {
  return run_for_info(client, Request::What::ask<runtime::operate::Stats>(), err,
                      lock_named(name, name_len));
}

rl_request *rl_semaphore_stats_start(rl_client *client, const char *name, size_t name_len) {
  return start(client, Request::What::ask<runtime::operate::Stats>(), lock_named(name, name_len));
}

rl_status rl_semaphore_set_cap(rl_client *client, const char *name, size_t name_len, int64_t cap,
                               int64_t for_ms, rl_error *err) {
  return run(client, Request::What::ask<runtime::operate::SetCap>(), err,
             [&](Request &request) { return fill_cap(request, name, name_len, cap, for_ms); });
}

rl_request *rl_semaphore_set_cap_start(rl_client *client, const char *name, size_t name_len,
                                       int64_t cap, int64_t for_ms) {
  return start(client, Request::What::ask<runtime::operate::SetCap>(),
               [&](Request &request) { return fill_cap(request, name, name_len, cap, for_ms); });
}

rl_request *rl_inspect_start(rl_client *client, const char *name, size_t name_len) {
  return start(client, Request::What::ask<runtime::operate::Inspect>(), lock_named(name, name_len));
}

rl_info *rl_request_take_info(rl_request *request) {
  if (request == nullptr || !request->runtime || request->runtime->is_forked()) return nullptr;
  Request &done = *request->request;
  const bool is_check = done.op == Request::Op::kCheck;
  if (!is_check && !(done.task && done.task->is_inspection())) return nullptr;
  if (rl_request_status(request) != RL_OK) return nullptr;
  return guarded<rl_info *>(nullptr, nullptr, [&]() -> rl_info * {
    auto info = std::make_unique<rl_info>();
    std::vector<NodeStatus> nodes;
    if (is_check) nodes = request->runtime->describe();
    if (request->is_taken.exchange(true)) return nullptr;
    is_check ? info->nodes.swap(nodes) : info->take(done.as<runtime::operate::Inspect>());
    return info.release();
  });
}

rl_info *rl_client_info(rl_client *client, rl_error *err) {
  if (!is_good(client, err)) return nullptr;
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
    auto info = std::make_unique<rl_info>();
    info->is_of_server = true;
    const Nanos deadline = boot_now() + settings.connect_timeout;
    if (outcome.ok()) outcome = runtime::read_status(settings, deadline, info->server);
    answer(err, outcome);
    return outcome.ok() ? info.release() : nullptr;
  });
}

rl_status rl_force_release(rl_client *client, const char *name, size_t name_len, const char *token,
                           size_t token_len, rl_error *err) {
  return run(client, Request::What::ask<runtime::operate::Force>(), err,
             force_with(name, name_len, token, token_len));
}

rl_status rl_force_release_any(rl_client *client, const char *name, size_t name_len,
                               rl_error *err) {
  return run(client, Request::What::ask<runtime::operate::Force>(), err,
             lock_named(name, name_len));
}

rl_request *rl_force_release_start(rl_client *client, const char *name, size_t name_len,
                                   const char *token, size_t token_len) {
  return start(client, Request::What::ask<runtime::operate::Force>(),
               force_with(name, name_len, token, token_len));
}

rl_request *rl_force_release_any_start(rl_client *client, const char *name, size_t name_len) {
  return start(client, Request::What::ask<runtime::operate::Force>(), lock_named(name, name_len));
}

}  // extern "C"
