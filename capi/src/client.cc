// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Options and clients.
#include <algorithm>

#include "calls.h"
#include "config/url.h"

using namespace redlatch;
using namespace redlatch::capi;

namespace {

// A client of `url`, once `resolve` has made its settings.
template <class Resolve>
rl_client *open(const char *url, size_t url_len, const rl_client_options *options, rl_error *err,
                const Resolve &resolve) {
  return guarded<rl_client *>(err, nullptr, [&]() -> rl_client * {
    static const config::Options kNone;
    std::vector<Settings> nodes;
    std::optional<QuorumSettings> quorum;
    const auto &chosen = options == nullptr ? kNone : options->options;
    Outcome outcome = check_text("url", url, url_len);
    if (outcome.ok()) outcome = resolve(chosen, text_of(url, url_len), nodes, quorum);
    if (!outcome.ok()) return answer(err, outcome), nullptr;
    auto client = std::make_unique<rl_client>();
    client->runtime = runtime::Runtime::open(std::move(nodes), quorum, outcome);
    answer(err, outcome);
    return client->runtime ? client.release() : nullptr;
  });
}

// Set the acquire option `name` by `set_it`. A mistake is kept for the acquire that uses `options`,
// because most callers of a setter do not look at its status.
template <class Set>
rl_status set(rl_acquire_options *options, std::string_view name, rl_error *err,
              const Set &set_it) {
  if (options == nullptr) return null_argument(err, "options");
  const uint64_t bit = config::bit_of(name);
  auto &mistakes = options->mistakes;
  const auto is_same = [bit](const auto &mistake) { return mistake.first == bit; };
  mistakes.erase(std::remove_if(mistakes.begin(), mistakes.end(), is_same), mistakes.end());
  options->without_memory &= ~bit;
  const rl_status status = guarded_status(err, [&](rl_error *e) {
    auto outcome = set_it(options->options);
    answer(e, outcome);
    if (!outcome.ok()) mistakes.emplace_back(bit, std::move(outcome));
  });
  // Also one that leaves no memory for its message.
  if (status != RL_OK && (mistakes.empty() || !is_same(mistakes.back()))) {
    options->without_memory |= bit;
  }
  return status;
}

rl_status set_number(rl_acquire_options *options, std::string_view name, int64_t number) {
  return set(options, name, nullptr,
             [&](AcquireSettings &settings) { return config::set_number(settings, name, number); });
}

Outcome check_pair(const char *name, size_t name_len, const char *value, size_t value_len) {
  auto outcome = check_text("name", name, name_len);
  return outcome.ok() ? check_text("value", value, value_len) : outcome;
}

Outcome check_login(size_t user_size, size_t password_size, int64_t valid_ms) {
  if (user_size > kMaxNameBytes) {
    return failure(Status::kInvalid, "user must be at most " + std::to_string(kMaxNameBytes) +
                                         " bytes (got " + std::to_string(user_size) + ")");
  }
  if (password_size == 0 || password_size > kMaxPasswordBytes) {
    return failure(Status::kInvalid, "password must be 1 to " + std::to_string(kMaxPasswordBytes) +
                                         " bytes (got " + std::to_string(password_size) + ")");
  }
  if (valid_ms == -1 || valid_ms >= kMinCredentialsMs) return {};
  return failure(Status::kInvalid, "valid_ms must be " + std::to_string(kMinCredentialsMs) +
                                       " or more, or -1 for no end (got " +
                                       std::to_string(valid_ms) + ")");
}

std::string urls_of(const runtime::Runtime &client) {
  std::string urls;
  for (const Settings &node : client.nodes()) urls += (urls.empty() ? "" : "\n") + node.shown_url;
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
    auto outcome = check_pair(name, name_len, value, value_len);
    if (outcome.ok()) {
      outcome = options->options.set(text_of(name, name_len), text_of(value, value_len));
    }
    answer(e, outcome);
  });
}

rl_status rl_client_options_set_from_env(rl_client_options *options, rl_error *err) {
  if (options == nullptr) return null_argument(err, "options");
  return guarded_status(err, [&](rl_error *e) { answer(e, options->options.set_from_env()); });
}

size_t rl_client_options_get(const rl_client_options *options, const char *name, size_t name_len,
                             char *buffer, size_t buffer_size) {
  if (options == nullptr) return copy_out({}, buffer, buffer_size);
  return guarded_text(buffer, buffer_size, [&] {
    return copy_out(options->options.get(text_of(name, name_len)), buffer, buffer_size);
  });
}

rl_acquire_options *rl_acquire_options_new(void) { return new (std::nothrow) rl_acquire_options; }

void rl_acquire_options_free(rl_acquire_options *options) { delete options; }

rl_status rl_acquire_options_set(rl_acquire_options *options, const char *name, size_t name_len,
                                 const char *value, size_t value_len, rl_error *err) {
  const auto option = text_of(name, name_len);
  return set(options, option, err, [&](AcquireSettings &settings) {
    auto outcome = check_pair(name, name_len, value, value_len);
    return outcome.ok() ? config::set_option(settings, option, text_of(value, value_len)) : outcome;
  });
}

size_t rl_acquire_options_get(const rl_acquire_options *options, const char *name, size_t name_len,
                              char *buffer, size_t buffer_size) {
  if (options == nullptr) return copy_out({}, buffer, buffer_size);
  return guarded_text(buffer, buffer_size, [&] {
    const auto value = config::option_of(options->options, text_of(name, name_len));
    return copy_out(value, buffer, buffer_size);
  });
}

// The typed setters: the end of the name, the option, and the type of the value.
#define RL_NUMBER_SETTER(suffix, option, type)                                          \
  rl_status rl_acquire_options_set_##suffix(rl_acquire_options *options, type number) { \
    return set_number(options, #option, number);                                        \
  }
#define RL_TEXT_SETTER(option)                                                                 \
  rl_status rl_acquire_options_set_##option(rl_acquire_options *options, const char *text,     \
                                            size_t size) {                                     \
    return rl_acquire_options_set(options, #option, sizeof(#option) - 1, text, size, nullptr); \
  }
RL_NUMBER_SETTER(ttl_ms, ttl, int64_t)
RL_NUMBER_SETTER(renew, renew, int32_t)
RL_NUMBER_SETTER(max_hold_ms, max_hold, int64_t)
RL_TEXT_SETTER(label)
RL_NUMBER_SETTER(confirm, confirm, int32_t)
RL_NUMBER_SETTER(max_local_handoffs, max_local_handoffs, int32_t)
RL_NUMBER_SETTER(yield_every, yield_every, int32_t)
RL_NUMBER_SETTER(yield_ms, yield_for, int64_t)
RL_TEXT_SETTER(owner)
RL_NUMBER_SETTER(reentrant, reentrant, int32_t)
RL_NUMBER_SETTER(format, format, int32_t)

rl_status rl_acquire_options_set_min_replicas(rl_acquire_options *options, int32_t replica_count,
                                              int64_t sync_timeout_ms) {
  const rl_status of_count = set_number(options, "min_replicas", replica_count);
  const rl_status of_timeout = set_number(options, "sync_timeout", sync_timeout_ms);
  return of_count == RL_OK ? of_timeout : of_count;
}

rl_client *rl_client_open(const char *url, size_t url_len, const rl_client_options *options,
                          rl_error *err) {
  return open(url, url_len, options, err, [](const auto &chosen, auto text, auto &nodes, auto &) {
    return chosen.resolve(text, nodes.emplace_back());
  });
}

rl_client *rl_redlock_open(const char *urls, size_t urls_len, const rl_client_options *options,
                           rl_error *err) {
  return open(urls, urls_len, options, err,
              [](const auto &chosen, auto text, auto &nodes, auto &quorum) {
                return chosen.resolve(text, nodes, quorum.emplace());
              });
}

rl_status rl_client_connect(rl_client *client, int64_t wait_ms, rl_error *err) {
  return run(client, Request::Op::kConnect, err, wait_of(wait_ms));
}

void rl_client_shutdown(rl_client *client) {
  if (client == nullptr || client->runtime->is_forked()) return;
  guarded_status(nullptr, [&](rl_error *) { client->runtime->shut_down(); });
}

// In a forked child the object is left alone: its locks and threads are the parent's.
void rl_client_close(rl_client *client) {
  const NoCancel no_cancel;
  if (client == nullptr || client->runtime->is_forked()) return;
  client->watched.forget();
  rl_client_shutdown(client);
  delete client;
}

void rl_redlock_close(rl_client *client) { rl_client_close(client); }

size_t rl_client_option(const rl_client *client, const char *name, size_t name_len, char *buffer,
                        size_t buffer_size) {
  if (client == nullptr) return copy_out({}, buffer, buffer_size);
  return guarded_text(buffer, buffer_size, [&] {
    const auto wanted = text_of(name, name_len);
    runtime::Runtime &runtime = *client->runtime;
    std::string value;
    if (wanted == "url") value = urls_of(runtime);
    if (value.empty() && runtime.is_quorum()) {
      value = config::option_of(runtime.quorum_settings(), wanted);
    }
    if (value.empty()) value = config::option_of(runtime.settings(), wanted);
    return copy_out(value, buffer, buffer_size);
  });
}

rl_status rl_client_credentials_set(rl_client *client, const char *user, size_t user_len,
                                    const char *password, size_t password_len, int64_t valid_ms,
                                    rl_error *err) {
  if (client == nullptr) return null_argument(err, "client");
  if (client->runtime->is_forked()) return forked(err);
  return guarded_status(err, [&](rl_error *e) {
    Outcome outcome = check_text("user", user, user_len);
    if (outcome.ok()) outcome = check_text("password", password, password_len);
    if (outcome.ok()) outcome = check_login(user_len, password_len, valid_ms);
    if (outcome.ok()) {
      outcome = client->runtime->give_credentials(
          text_of(user, user_len), text_of(password, password_len), runtime::validity_of(valid_ms));
    }
    answer(e, outcome);
  });
}

rl_status rl_client_credentials_fail(rl_client *client, const char *reason, size_t reason_len,
                                     rl_error *err) {
  if (client == nullptr) return null_argument(err, "client");
  if (client->runtime->is_forked()) return forked(err);
  return guarded_status(err, [&](rl_error *e) {
    Outcome outcome = check_text("reason", reason, reason_len);
    if (outcome.ok()) outcome = client->runtime->fail_credentials(text_of(reason, reason_len));
    answer(e, outcome);
  });
}

size_t rl_url_redact(const char *url, size_t url_len, char *buffer, size_t buffer_size) {
  if (url == nullptr) return copy_out({}, buffer, buffer_size);
  return guarded_text(buffer, buffer_size, [&] {
    return copy_out(config::redact_url(text_of(url, url_len)), buffer, buffer_size);
  });
}

size_t rl_nearest_word(const char *word, size_t word_len, const char *words, size_t words_len,
                       char *buffer, size_t buffer_size) {
  return guarded_text(buffer, buffer_size, [&] {
    std::vector<std::string_view> known;
    for (auto rest = text_of(words, words_len); !rest.empty();) {
      const auto one = rest.substr(0, rest.find(' '));
      if (!one.empty()) known.push_back(one);
      rest.remove_prefix(std::min(one.size() + 1, rest.size()));
    }
    return copy_out(config::nearest(known, text_of(word, word_len)), buffer, buffer_size);
  });
}

size_t rl_client_log_next(rl_client *client, char *buffer, size_t buffer_size) {
  if (client == nullptr || client->runtime->is_forked()) return copy_out({}, buffer, buffer_size);
  return guarded_text(buffer, buffer_size, [&] {
    std::string line;
    const bool has_room = buffer != nullptr && buffer_size > 0;
    const size_t size = client->runtime->log().take(has_room ? buffer_size - 1 : 0, line);
    return line.empty() ? size : copy_out(line, buffer, buffer_size);
  });
}

}  // extern "C"
