// SPDX-License-Identifier: Apache-2.0
// Copyright The redlatch authors
//
// Arguments and options of an acquire or attach: they are checked, and put into the request. The
// ranges of options are in core/config/options.def; core/protocol has the rules for names.
#include <algorithm>

#include "base/limits.h"
#include "base/text.h"
#include "handles.h"

namespace redlatch::capi {

namespace {

// The first mistake of a setter is the answer of the call that uses the options.
Outcome take_options(Request &request, const rl_acquire_options *options) {
  if (options == nullptr) return {};
  if (!options->mistakes.empty()) return options->mistakes.front().second;
  if (options->without_memory != 0) return {Status::kNoMemory, {}};
  request.options = options->options;
  // The id of a candidate is that of a token: it queues on the server itself.
  if (!request.options.candidate.empty()) request.options.max_local_handoffs = 0;
  return config::choose_format(request.options, request.options.format);
}

// The format must have the property `has`, for `use`.
Outcome check_format(const Request &request, bool runtime::FormatTraits::*has,
                     const std::string &use) {
  const runtime::FormatTraits &format = runtime::traits(request.options.format);
  if (format.*has) return {};
  return failure(Status::kInvalid, "option 'format' must be " + runtime::words_of_formats(has) +
                                       " for " + use + " (got " + std::string(format.word) + ")");
}

Outcome refuse_owner(const AcquireSettings &asked, const std::string &use) {
  if (asked.is_reentrant) {
    return failure(Status::kInvalid, "option 'reentrant' must be no for " + use + " (got 'yes')");
  }
  if (asked.owner.empty()) return {};
  return failure(Status::kInvalid, "option 'owner' must not be set for " + use + " (got " +
                                       quoted(asked.owner) + ")");
}

Outcome refuse_retain(const rl_acquire_options *options, const std::string &use,
                      std::string_view why) {
  if (options == nullptr || options->options.retain == 0) return {};
  return failure(Status::kInvalid, "option 'retain' must be 0 for " + use + ", which " +
                                       std::string(why) + " (got " +
                                       std::to_string(options->options.retain / kMs) + " ms)");
}

// The same for `use`, which has no owner, and no format without `has`.
Outcome take_plain_options(Request &request, const rl_acquire_options *options,
                           bool runtime::FormatTraits::*has, const std::string &use) {
  if (options != nullptr && options->mistakes.empty()) {
    const AcquireSettings &asked = options->options;
    if (auto outcome = refuse_owner(asked, use); !outcome.ok()) return outcome;
    if (asked.min_replicas > 0) {
      return failure(Status::kInvalid, "option 'min_replicas' must be 0 for " + use + " (got " +
                                           std::to_string(asked.min_replicas) + ")");
    }
  }
  auto outcome = take_options(request, options);
  return outcome.ok() ? check_format(request, has, use) : outcome;
}

// The option of a semaphore or a candidate, or the mode of a reader, that is set; empty: none.
std::string_view option_of_other_kind(const AcquireSettings &asked) {
  if (asked.limit > 0) return "limit";
  if (asked.permits != 1) return "permits";
  if (!asked.candidate.empty()) return "id";
  return config::mode_of(asked) == runtime::Mode::kRead ? "mode" : "";
}

// `use` has no owner, and is no semaphore, candidate or reader.
Outcome refuse_other_kinds(const rl_acquire_options *options, const std::string &use) {
  if (options == nullptr || !options->mistakes.empty()) return {};
  if (auto outcome = refuse_owner(options->options, use); !outcome.ok()) return outcome;
  const std::string_view option = option_of_other_kind(options->options);
  if (option.empty()) return {};
  return failure(Status::kInvalid, "option " + quoted(option) + " must not be set for " + use);
}

// In the mode kWrite, unless the caller sets another one.
Outcome fill_lock(const rl_client &client, Request &request, const char *name, size_t name_len,
                  int64_t wait_ms, const rl_acquire_options *options) {
  if (auto outcome = runtime::check_name(text_of(name, name_len)); !outcome.ok()) return outcome;
  if (auto outcome = runtime::check_wait(wait_ms); !outcome.ok()) return outcome;
  request.name = text_of(name, name_len);
  request.wait_ms = wait_ms;
  request.lease = std::make_shared<Lease>();
  if (!client.runtime->is_quorum()) return take_options(request, options);
  // Each of two permits could be granted by two of three nodes: three holders for two permits.
  if (options != nullptr && options->options.limit > 0) {
    return runtime::needs_one_server("a semaphore");
  }
  if (options != nullptr && !options->options.candidate.empty()) {
    return runtime::needs_one_server("an election");
  }
  auto outcome = refuse_retain(options, "a Redlock", "is held at several servers");
  if (!outcome.ok()) return outcome;
  return take_plain_options(request, options, &runtime::FormatTraits::has_quorum, "a Redlock");
}

}  // namespace

Outcome fill_acquire(const rl_client &client, Request &request, const char *name, size_t name_len,
                     int64_t wait_ms, const rl_acquire_options *options) {
  const auto mode = options == nullptr ? runtime::Mode::kWrite : config::mode_of(options->options);
  // The writer of a read-write lock is a mutex, and may be one of a Redlock, or reentrant.
  return mode == runtime::Mode::kWrite
             ? fill_lock(client, request, name, name_len, wait_ms, options)
             : fill_rw(client, request, mode, name, name_len, wait_ms, options);
}

Outcome fill_rw(const rl_client &client, Request &request, runtime::Mode mode, const char *name,
                size_t name_len, int64_t wait_ms, const rl_acquire_options *options) {
  if (client.runtime->is_quorum()) return runtime::needs_one_server("a read-write lock");
  auto outcome = fill_lock(client, request, name, name_len, wait_ms, options);
  request.options.mode = mode;
  if (!outcome.ok()) return outcome;
  const std::string &candidate = request.options.candidate;
  if (mode == runtime::Mode::kRead && !candidate.empty()) {
    return failure(Status::kInvalid,
                   "option 'id' must not be set for a reader (got " + quoted(candidate) + ")");
  }
  return check_format(request, &runtime::FormatTraits::has_readers,
                      "a read-write lock, which is not reentrant");
}

Outcome fill_flight(const rl_client &client, Request &request, const char *name, size_t name_len,
                    int64_t wait_ms, const rl_acquire_options *options) {
  const std::string use = "a flight";
  if (client.runtime->is_quorum()) return runtime::needs_one_server(use);
  if (wait_ms == 0) {
    return failure(Status::kInvalid, "wait_ms must be -1, or above 0, for " + use + " (got 0)");
  }
  if (auto outcome = refuse_other_kinds(options, use); !outcome.ok()) return outcome;
  auto outcome = refuse_retain(options, use, "reads the value instead");
  if (!outcome.ok()) return outcome;
  outcome = fill_lock(client, request, name, name_len, wait_ms, options);
  if (!outcome.ok()) return outcome;
  outcome = check_format(request, &runtime::FormatTraits::has_jobs, use);
  if (!outcome.ok()) return outcome;
  request.arguments = std::make_unique<runtime::RequestArguments>();
  request.arguments->make_lease = []() -> decltype(Request::lease) {
    return std::make_shared<Lease>();
  };
  return outcome;
}

Outcome fill_acquire_all(const rl_client &client, Request &request,
                         const std::vector<runtime::NamedMode> &names, int64_t wait_ms,
                         const rl_acquire_options *options) {
  if (names.empty()) {
    return failure(Status::kInvalid,
                   "names must be 1 to " + std::to_string(kMaxNames) + " (got 0)");
  }
  if (auto outcome = runtime::check_wait(wait_ms); !outcome.ok()) return outcome;
  const std::string use = "several names";
  if (client.runtime->is_quorum()) return runtime::needs_one_server("an acquire of " + use);
  if (auto outcome = refuse_other_kinds(options, use); !outcome.ok()) return outcome;
  auto retained = refuse_retain(options, use, "are released together");
  if (!retained.ok()) return retained;
  if (auto outcome = take_options(request, options); !outcome.ok()) return outcome;
  // A name would end while others are waited for.
  if (names.size() > 1 && wait_ms != 0 && !request.options.is_renewed) {
    return failure(Status::kInvalid,
                   "option 'renew' must be yes for " + use + " with a wait (got 'no')");
  }
  const auto reads = [](const auto &one) { return one.mode == runtime::Mode::kRead; };
  if (std::any_of(names.begin(), names.end(), reads)) {
    auto outcome =
        check_format(request, &runtime::FormatTraits::has_readers, "a name that is read");
    if (!outcome.ok()) return outcome;
  }
  request.wait_ms = wait_ms;
  request.lease = std::make_shared<Lease>();
  if (names.size() == 1) {
    request.name = names.front().name;
    request.options.mode = names.front().mode;
  } else {
    request.several.names = std::make_unique<const std::vector<runtime::NamedMode>>(names);
  }
  return {};
}

Outcome fill_attach(Request &request, std::string_view name, std::string_view token, int64_t fence,
                    const rl_acquire_options *options) {
  if (auto outcome = runtime::check_name(name); !outcome.ok()) return outcome;
  if (auto outcome = runtime::check_token(token); !outcome.ok()) return outcome;
  if (fence < 0 || fence > kMaxFence) {
    return failure(Status::kInvalid, "fence must be 0 to " + std::to_string(kMaxFence) + " (got " +
                                         std::to_string(fence) + ")");
  }
  auto outcome =
      take_plain_options(request, options, &runtime::FormatTraits::has_attach, "an attach");
  if (!outcome.ok()) return outcome;
  if (!request.options.candidate.empty()) {
    return failure(Status::kInvalid, "option 'id' must not be set for an attach");
  }
  outcome = refuse_retain(options, "an attach", "takes over a lease of another client");
  if (!outcome.ok()) return outcome;
  request.name = name;
  request.arguments->token = token;
  request.arguments->fence = fence;
  request.lease = std::make_shared<Lease>();
  return {};
}

}  // namespace redlatch::capi
