// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Elections: who leads, and waiting for the next leader. A candidate acquires.
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
    auto outcome = fill_name(request, name, name_len);
    if (outcome.ok()) outcome = runtime::check_wait(wait_ms);
    if (outcome.ok() && seen < -1) {
      outcome =
          failure(Status::kInvalid, "seen must be -1, or a position of an earlier answer (got " +
                                        std::to_string(seen) + ")");
    }
    request.wait_ms = wait_ms;
    request.as<Leader>().seen = seen;
    return outcome;
  };
}

}  // namespace

extern "C" {

rl_info *rl_leader(rl_client *client, const char *name, size_t name_len, rl_error *err) {
  return run_for_info(client, kLeader, err, watch_of(name, name_len, -1, 0));
}

rl_request *rl_leader_start(rl_client *client, const char *name, size_t name_len) {
  return start(client, kLeader, watch_of(name, name_len, -1, 0));
}

rl_info *rl_leader_watch(rl_client *client, const char *name, size_t name_len, int64_t seen,
                         int64_t wait_ms, rl_error *err) {
  return run_for_info(client, kLeader, err, watch_of(name, name_len, seen, wait_ms));
}

rl_request *rl_leader_watch_start(rl_client *client, const char *name, size_t name_len,
                                  int64_t seen, int64_t wait_ms) {
  return start(client, kLeader, watch_of(name, name_len, seen, wait_ms));
}

}  // extern "C"
