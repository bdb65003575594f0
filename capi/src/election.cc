// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Elections: who leads, and waiting for the next leader. A candidate acquires.
#include <memory>
#include <string>

#include "calls.h"
#include "info.h"

using namespace redlatch;
using namespace redlatch::capi;

namespace {

using runtime::operate::Leader;

constexpr auto kLeader = Request::What::ask<Leader>();

auto watch_of(const char *name, size_t name_len, int64_t seen, int64_t wait_ms) {
  return [=](Request &request) {
    auto outcome = runtime::check_name(text_of(name, name_len));
    if (outcome.ok()) outcome = runtime::check_wait(wait_ms);
    if (outcome.ok() && seen < -1) {
      outcome =
          failure(Status::kInvalid, "seen must be -1, or a position of an earlier answer (got " +
                                        std::to_string(seen) + ")");
    }
    if (!outcome.ok()) return outcome;
    request.name = text_of(name, name_len);
    request.wait_ms = wait_ms;
    request.as<Leader>().seen = seen;
    return outcome;
  };
}

rl_info *watch(rl_client *client, const char *name, size_t name_len, int64_t seen, int64_t wait_ms,
               rl_error *err) {
  return guarded<rl_info *>(err, nullptr, [&]() -> rl_info * {
    auto info = std::make_unique<rl_info>();  // before the server is asked
    std::shared_ptr<Request> kept;
    const auto fill = [&](const std::shared_ptr<Request> &request) {
      kept = request;
      return watch_of(name, name_len, seen, wait_ms)(*request);
    };
    if (run(client, kLeader, err, fill) != RL_OK) return nullptr;
    info->take(kept->as<Leader>());
    return info.release();
  });
}

}  // namespace

extern "C" {

rl_info *rl_leader(rl_client *client, const char *name, size_t name_len, rl_error *err) {
  return watch(client, name, name_len, -1, 0, err);
}

rl_request *rl_leader_start(rl_client *client, const char *name, size_t name_len) {
  return start(client, kLeader, watch_of(name, name_len, -1, 0));
}

rl_info *rl_leader_watch(rl_client *client, const char *name, size_t name_len, int64_t seen,
                         int64_t wait_ms, rl_error *err) {
  return watch(client, name, name_len, seen, wait_ms, err);
}

rl_request *rl_leader_watch_start(rl_client *client, const char *name, size_t name_len,
                                  int64_t seen, int64_t wait_ms) {
  return start(client, kLeader, watch_of(name, name_len, seen, wait_ms));
}

}  // extern "C"
