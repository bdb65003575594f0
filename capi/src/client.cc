// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Options, clients and Redlocks.
#include "base/log.h"
#include "calls.h"
#include "config/url.h"

using namespace redlatch;
using namespace redlatch::capi;

namespace {

// A client or a Redlock, once `resolve` has made its settings.
template <class Handle, class Resolve>
Handle *open(const rl_client_options *options, rl_error *err, const Resolve &resolve) {
  return guarded<Handle *>(err, nullptr, [&]() -> Handle * {
    static const config::Options kNone;
    std::vector<Settings> nodes;
    std::optional<QuorumSettings> quorum;
    Outcome outcome = resolve(options == nullptr ? kNone : options->options, nodes, quorum);
    if (!outcome.ok()) return answer(err, outcome), nullptr;
    auto handle = std::make_unique<Handle>();
    handle->runtime = runtime::Runtime::open(std::move(nodes), quorum, outcome);
    answer(err, outcome);
    return handle->runtime ? handle.release() : nullptr;
  });
}

std::string urls_of(const runtime::Runtime &redlock) {
  std::string urls;
  for (const Settings &node : redlock.nodes()) urls += (urls.empty() ? "" : "\n") + node.shown_url;
  return urls;
}

}  // namespace

extern "C" {

rl_client_options *rl_client_options_new(void) { return new (std::nothrow) rl_client_options; }

void rl_client_options_free(rl_client_options *options) { delete options; }

rl_status rl_client_options_set(rl_client_options *options, const char *name, size_t name_len,
                                const char *value, size_t value_len, rl_error *err) {
  if (options == nullptr) return null_argument(err, "options");
  return guarded_status(err, [&](rl_error *e) {
    answer(e, options->options.set(text_of(name, name_len), text_of(value, value_len)));
  });
}

rl_status rl_client_options_set_from_env(rl_client_options *options, rl_error *err) {
  if (options == nullptr) return null_argument(err, "options");
  return guarded_status(err, [&](rl_error *e) { answer(e, options->options.set_from_env()); });
}

rl_acquire_options *rl_acquire_options_new(void) { return new (std::nothrow) rl_acquire_options; }

void rl_acquire_options_free(rl_acquire_options *options) { delete options; }

rl_status rl_acquire_options_set_ttl_ms(rl_acquire_options *options, int64_t ttl_ms) {
  if (options == nullptr || ttl_ms < kMinTtlMs || ttl_ms > kMaxTtlMs) return RL_E_INVALID;
  options->options.ttl = ttl_ms * kMs;
  return RL_OK;
}

rl_status rl_acquire_options_set_renew(rl_acquire_options *options, int32_t is_on) {
  if (options == nullptr || is_on < 0 || is_on > 1) return RL_E_INVALID;
  options->options.is_renewed = is_on == 1;
  return RL_OK;
}

rl_status rl_acquire_options_set_max_hold_ms(rl_acquire_options *options, int64_t max_hold_ms) {
  if (options == nullptr || max_hold_ms < 0 || max_hold_ms > kMaxTtlMs) return RL_E_INVALID;
  options->options.max_hold = max_hold_ms * kMs;
  return RL_OK;
}

rl_status rl_acquire_options_set_confirm(rl_acquire_options *options, int32_t is_on) {
  if (options == nullptr || is_on < 0 || is_on > 1) return RL_E_INVALID;
  options->options.is_confirmed = is_on == 1;
  return RL_OK;
}

rl_status rl_acquire_options_set_max_local_handoffs(rl_acquire_options *options,
                                                    int32_t grant_count) {
  if (options == nullptr || grant_count < 0 || grant_count > kMaxLocalHandoffs) return RL_E_INVALID;
  options->options.max_local_handoffs = grant_count;
  return RL_OK;
}

rl_status rl_acquire_options_set_yield_every(rl_acquire_options *options, int32_t grant_count) {
  if (options == nullptr || grant_count < 0 || grant_count > kMaxYieldEvery) return RL_E_INVALID;
  options->options.yield_policy.every = grant_count;
  return RL_OK;
}

rl_status rl_acquire_options_set_yield_ms(rl_acquire_options *options, int64_t window_ms) {
  if (options == nullptr || window_ms < 1 || window_ms > kMaxYieldMs) return RL_E_INVALID;
  options->options.yield_policy.for_ms = window_ms;
  return RL_OK;
}

rl_status rl_acquire_options_set_label(rl_acquire_options *options, const char *label,
                                       size_t label_len) {
  if (options == nullptr || (label == nullptr && label_len > 0) || label_len > kMaxLabelBytes) {
    return RL_E_INVALID;
  }
  return guarded_status(nullptr, [&](rl_error *e) {
    options->options.label = text_of(label, label_len);
    answer(e, Status::kOk);
  });
}

static rl_status set_owner(rl_acquire_options *options, const char *owner, size_t owner_len,
                           runtime::Format format) {
  if (options == nullptr || owner == nullptr) return RL_E_INVALID;
  if (owner_len == 0 || owner_len > kMaxOwnerBytes) return RL_E_INVALID;
  return guarded_status(nullptr, [&](rl_error *e) {
    options->options.owner = text_of(owner, owner_len);
    options->options.format = format;
    answer(e, Status::kOk);
  });
}

rl_status rl_acquire_options_set_reentrant(rl_acquire_options *options, const char *owner,
                                           size_t owner_len) {
  return set_owner(options, owner, owner_len, runtime::Format::kHash);
}

rl_status rl_acquire_options_set_owner(rl_acquire_options *options, const char *owner,
                                       size_t owner_len) {
  if (options == nullptr) return RL_E_INVALID;
  return set_owner(options, owner, owner_len, options->options.format);
}

rl_status rl_acquire_options_set_format(rl_acquire_options *options, int32_t format) {
  if (options == nullptr) return RL_E_INVALID;
  if (format < RL_FORMAT_STRING || format > RL_FORMAT_HASH_RW) return RL_E_INVALID;
  options->options.format = static_cast<runtime::Format>(format);
  return RL_OK;
}

rl_client *rl_client_open(const char *url, size_t url_len, const rl_client_options *options,
                          rl_error *err) {
  return open<rl_client>(options, err, [&](const auto &chosen, auto &nodes, auto &) {
    return chosen.resolve(text_of(url, url_len), nodes.emplace_back());
  });
}

rl_redlock *rl_redlock_open(const char *urls, size_t urls_len, const rl_client_options *options,
                            rl_error *err) {
  return open<rl_redlock>(options, err, [&](const auto &chosen, auto &nodes, auto &quorum) {
    return chosen.resolve(text_of(urls, urls_len), nodes, quorum.emplace());
  });
}

rl_status rl_client_connect(rl_client *client, int64_t wait_ms, rl_error *err) {
  return run(client, Request::Op::kConnect, err, wait_of(wait_ms));
}

void rl_client_shutdown(rl_client *client) { shut_down(client); }

void rl_client_close(rl_client *client) { close(client); }

size_t rl_client_option(const rl_client *client, const char *name, size_t name_len, char *buffer,
                        size_t buffer_size) {
  if (client == nullptr) return copy_out({}, buffer, buffer_size);
  return guarded(nullptr, size_t{0}, [&] {
    const auto wanted = text_of(name, name_len);
    runtime::Runtime &told = *client->runtime;
    if (wanted != "delivery") {
      return copy_out(config::option_of(told.settings(), wanted), buffer, buffer_size);
    }
    return copy_out(told.is_forked() ? std::string() : told.handoff_mode(), buffer, buffer_size);
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

size_t rl_url_redact(const char *url, size_t url_len, char *buffer, size_t buffer_size) {
  if (url == nullptr) return copy_out({}, buffer, buffer_size);
  return guarded(nullptr, size_t{0}, [&] {
    return copy_out(config::redact_url(text_of(url, url_len)), buffer, buffer_size);
  });
}

size_t rl_log_next(char *buffer, size_t buffer_size) {
  return guarded(nullptr, size_t{0}, [&] {
    std::string line;
    const bool has_room = buffer != nullptr && buffer_size > 0;
    const size_t size = take_log_line(has_room ? buffer_size - 1 : 0, line);
    return line.empty() ? size : copy_out(line, buffer, buffer_size);
  });
}

}  // extern "C"
