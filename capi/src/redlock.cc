// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Redlocks.
#include "calls.h"

using namespace redlatch;
using namespace redlatch::capi;

namespace {

std::string urls_of(const runtime::Runtime &redlock) {
  std::string urls;
  for (const Settings &node : redlock.nodes()) urls += (urls.empty() ? "" : "\n") + node.shown_url;
  return urls;
}

}  // namespace

extern "C" {

rl_redlock *rl_redlock_open(const char *urls, size_t urls_len, const rl_client_options *options,
                            rl_error *err) {
  return guarded<rl_redlock *>(err, nullptr, [&]() -> rl_redlock * {
    std::vector<Settings> nodes;
    QuorumSettings settings;
    static const config::Options kNone;
    const auto &chosen = options == nullptr ? kNone : options->options;
    const auto outcome = chosen.resolve(text_of(urls, urls_len), nodes, settings);
    if (!outcome.ok()) return answer(err, outcome), nullptr;
    auto handle = std::make_unique<rl_redlock>();
    Outcome why;
    handle->runtime = runtime::Runtime::open(std::move(nodes), settings, why);
    answer(err, why);
    return handle->runtime ? handle.release() : nullptr;
  });
}

rl_status rl_redlock_connect(rl_redlock *redlock, int64_t wait_ms, rl_error *err) {
  return run(redlock, Request::Op::kConnect, err, wait_of(wait_ms));
}

void rl_redlock_shutdown(rl_redlock *redlock) { shut_down(redlock); }

void rl_redlock_close(rl_redlock *redlock) { close(redlock); }

size_t rl_redlock_option(const rl_redlock *redlock, const char *name, size_t name_len, char *buffer,
                         size_t buffer_size) {
  if (redlock == nullptr) return copy_out({}, buffer, buffer_size);
  return guarded(nullptr, size_t{0}, [&] {
    const auto wanted = text_of(name, name_len);
    runtime::Runtime &told = *redlock->runtime;
    std::string value = config::option_of(told.quorum_settings(), wanted);
    if (wanted == "url") value = urls_of(told);
    if (wanted == "nodes" && !told.is_forked()) value = told.describe();
    if (value.empty()) value = config::option_of(told.nodes().front(), wanted);
    return copy_out(value, buffer, buffer_size);
  });
}

}  // extern "C"
